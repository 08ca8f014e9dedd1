"""The sessions of the S3 client library, without what makes opening, listing and each request slow.

A session reads the descriptions of all of Amazon's services, and spells each time stamp of a listing out with
a parser that knows every way to write a date. The first costs a store that is opened fifteen times as much as the
rest, the second a listing three times as much. Each row of a listing it reads field by field as its description says,
which takes four times as long as to take the three fields that are wanted. And for each request it puts together anew
who sends it, which is a fifth of all that the library does for one.
"""

from __future__ import annotations

import functools
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from xml.etree import ElementTree

__all__ = ["new_session", "user_agent"]


def new_session(**given: Any) -> Any:
    """Return a new session of aiobotocore: credentials and configuration are its own, descriptions are shared.

    Args:
        given: arguments for the session.
    """
    from aiobotocore.session import AioSession

    session = AioSession(**given)
    session.register_component("data_loader", _loader(session.get_config_variable("data_path")))
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)
    session.register("before-parse.s3.ListObjectsV2", _read_rows)
    return session


def user_agent(session: Any) -> dict[str, str]:
    """Return the setting by which each request says the same of who sends it; none where only the library can."""
    appid = session.get_config_variable("user_agent_appid")  # left out of what is said where that is a setting
    return {} if appid else {"user_agent": session.user_agent()}


@functools.cache
def _loader(data_path: str | None) -> Any:
    """Return what reads descriptions, and remembers them, for all sessions of this process."""
    from botocore.loaders import create_loader

    return create_loader(data_path)


def _read_rows(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    """Take the rows out of a listing before the library reads it, and give it what is wanted of them."""
    if response_dict["status_code"] != 200:
        return
    try:
        listing = ElementTree.fromstring(response_dict["body"])  # noqa: S314 - by the parser that the library uses
    except ElementTree.ParseError:
        return  # whose words for it are known
    space = listing.tag.removesuffix("ListBucketResult")
    names = [(name, space + name) for name in ("Key", "Size", "LastModified")]
    rows = listing.findall(space + "Contents")
    found = [{name: row.findtext(tag, "") for name, tag in names} for row in rows]
    for row in rows:
        listing.remove(row)
    response_dict["body"] = ElementTree.tostring(listing)
    if found:
        customized_response_dict["Contents"] = [
            {**row, "Size": int(row["Size"]), "LastModified": _time(row["LastModified"])} for row in found
        ]


def _time(text: Any) -> datetime:
    """Return the time of a stamp as S3 writes it in listings, or in headers, or in any other way."""
    from botocore.utils import parse_timestamp

    if isinstance(text, str) and len(text) >= len("2026-01-01T00:00:00Z"):
        try:
            if text.endswith("Z"):
                return datetime.fromisoformat(text)
            if text.endswith(" GMT"):
                return parsedate_to_datetime(text)
        except ValueError:
            pass
    told: datetime = parse_timestamp(text)
    return told
