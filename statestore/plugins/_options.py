"""Options: three sources gathered into one model, and errors that say which option, from where, and what is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from statestore.errors import PluginError
from statestore.plugins._backend import Backend
from statestore.plugins._wrapping import Wrapping

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["Owner", "kind", "validate", "variable"]

_HIDDEN = "***"

Owner = Backend | Wrapping


class _Given(NamedTuple):
    """A value and who gave it: ``keyword``, ``URL``, or the name of an environment variable."""

    value: object
    source: str


def kind(owner: Owner) -> str:
    """Return the word for what has options, which is also the fact that names it in an error."""
    return "wrapper" if isinstance(owner, Wrapping) else "backend"


def variable(owner: Owner, option: str = "") -> str:
    """Return the environment variable of an option; without one, what all of the owner's begin with."""
    return f"STATESTORE_{owner.name}_{option}".upper().replace("-", "_")


def validate(owner: Owner, query: Mapping[str, str], keywords: Mapping[str, Any], owners: Iterable[Owner]) -> BaseModel:
    """Return the options of a backend or wrapper: keyword arguments over the URL's query over the environment.

    Args:
        owner: whose options.
        query: what the URL gives.
        keywords: what the caller gives.
        owners: all that are installed: variables of another one with a longer name are not this one's.

    Raises:
        PluginError: an option that it has not, or a value that it does not take.
    """
    fields = owner.options.model_fields
    given = dict(_environment(owner, owners))
    given |= {option: _Given(value, "URL") for option, value in query.items()}
    given |= {option: _Given(value, "keyword") for option, value in keywords.items()}
    for option, (_, source) in given.items():
        # A model that allows more is for callers, who see what they write; a variable may be a slip of years ago.
        if option not in fields and (source.startswith("STATESTORE_") or not _is_open(owner)):
            raise PluginError(
                f"this {kind(owner)} has no such option: "
                + (f"it has {', '.join(_spelled(owner, field) for field in fields)}" if fields else "it has none"),
                **{kind(owner): owner.name},
                option=_spelled(owner, option),
                source=source,
            )
    from pydantic import ValidationError

    try:
        return owner.options.model_validate({option: value for option, (value, _) in given.items()})
    except ValidationError as error:
        refused = error
    # Outside of the except block: the error as pydantic made it holds every value, and would be the context.
    raise _refusal(owner, given, refused)


def _spelled(owner: Owner, option: str) -> str:
    """Return an option's name as the caller writes it."""
    return owner.prefix + option if isinstance(owner, Wrapping) else option


def _environment(owner: Owner, owners: Iterable[Owner]) -> Iterator[tuple[str, _Given]]:
    prefix = variable(owner)
    longer = tuple(other for other in map(variable, owners) if other != prefix and other.startswith(prefix))
    options = {variable(owner, option): option for option in owner.options.model_fields}
    for name, value in os.environ.items():
        # An empty variable counts as one that is not set.
        if name.startswith(prefix) and value and not (longer and name.startswith(longer)):
            yield options.get(name, name.removeprefix(prefix).lower()), _Given(value, name)


def _is_open(owner: Owner) -> bool:
    return owner.options.model_config.get("extra") == "allow"


def _refusal(owner: Owner, given: Mapping[str, _Given], refused: ValidationError) -> PluginError:
    """Return the error for what pydantic refused, its cause the same error without secrets."""
    from pydantic import ValidationError
    from pydantic_core import InitErrorDetails, PydanticCustomError

    secrets = {name for name, field in owner.options.model_fields.items() if _is_secret(field.annotation, set())}
    details, reasons = [], []
    for line in refused.errors(include_url=False):
        option = str(line["loc"][0]) if line["loc"] else ""
        # What a backend's own validators say may quote a value, and the input of a check of all options holds each.
        hidden = option in secrets or (not option and not secrets.isdisjoint(given))
        reason = f"refused, and not shown since it is secret ({line['type']})" if hidden else line["msg"]
        reason = reason if reason.isprintable() else ascii(reason)
        missing = line["type"] == "missing" and len(line["loc"]) == 1
        # The input of a missing option, too, is all the others.
        value = _HIDDEN if hidden or missing or not option else _without_user(line["input"])
        reasons.append((option, reason, value, missing))
        refusal = PydanticCustomError("refused", "{reason}", {"reason": reason})
        details.append(InitErrorDetails(type=refusal, loc=line["loc"][:1], input=value))
    cause = ValidationError.from_exception_data(refused.title, details)
    option, reason, value, missing = reasons[0]
    rest = {other for other, *_ in reasons[1:]} - {"", option}
    others = ",".join(sorted(_spelled(owner, other) for other in rest)) or None
    if missing:
        error = PluginError(
            f"this {kind(owner)} needs an option: "
            "give it as a keyword argument, in the URL's query or in the environment",
            **{kind(owner): owner.name},
            option=_spelled(owner, option),
            variable=variable(owner, option),
            others=others,
        )
    else:
        error = PluginError(
            f"{'an option has a value' if option else 'the options have values'} that the {kind(owner)} does not take: "
            f"{reason[:1].lower()}{reason[1:]}",
            **{kind(owner): owner.name},
            option=_spelled(owner, option) if option else None,
            given=_short(value) if option else None,
            source=given[option].source if option in given else None,
            others=others,
        )
    error.__cause__ = cause
    return error


def _is_secret(annotation: Any, seen: set[Any]) -> bool:
    """Say whether a value of this type may hold a secret, in whatever it is wrapped."""
    from pydantic import BaseModel, Secret, SecretBytes, SecretStr

    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and issubclass(kind, SecretStr | SecretBytes | Secret):
        return True
    parts = get_args(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        parts = tuple(field.annotation for field in kind.model_fields.values())
    return any(_is_secret(part, seen) for part in parts)


def _without_user(value: object) -> object:
    """Return a value as it may be shown: an address without the user and the password in front of its host."""
    return f"***@{value.rpartition('@')[2]}" if isinstance(value, str) and "@" in value else value


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
