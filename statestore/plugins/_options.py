"""Options: three sources gathered into one model, and errors that say which option, from where, and what is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

from statestore.errors import PluginError
from statestore.plugins._backend import Backend

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["validate", "variable"]

_HIDDEN = "***"


class _Given(NamedTuple):
    """A value and who gave it: ``keyword``, ``URL``, or the name of an environment variable."""

    value: object
    source: str


def variable(backend: Backend, option: str = "") -> str:
    """Return the environment variable of an option; without one, what all of the backend's begin with."""
    return f"STATESTORE_{backend.name}_{option}".upper().replace("-", "_")


def validate(
    backend: Backend, query: Mapping[str, str], keywords: Mapping[str, Any], backends: list[Backend]
) -> BaseModel:
    """Return the backend's options: keyword arguments over the URL's query over the environment.

    Args:
        backend: whose options.
        query: what the URL gives.
        keywords: what the caller gives.
        backends: all that are installed: variables of another one with a longer name are not this one's.

    Raises:
        PluginError: an option that it has not, or a value that it does not take.
    """
    fields = backend.options.model_fields
    given = dict(_environment(backend, backends))
    given |= {option: _Given(value, "URL") for option, value in query.items()}
    given |= {option: _Given(value, "keyword") for option, value in keywords.items()}
    for option, (_, source) in given.items():
        # A model that allows more is for callers, who see what they write; a variable may be a slip of years ago.
        if option not in fields and (source.startswith("STATESTORE_") or not _is_open(backend)):
            raise PluginError(
                "this backend has no such option: " + (f"it has {', '.join(fields)}" if fields else "it has none"),
                backend=backend.name,
                option=option,
                source=source,
            )
    from pydantic import ValidationError

    try:
        return backend.options.model_validate({option: value for option, (value, _) in given.items()})
    except ValidationError as error:
        refused = error
    # Outside of the except block: the error as pydantic made it holds every value, and would be the context.
    raise _refusal(backend, given, refused)


def _environment(backend: Backend, backends: list[Backend]) -> Iterator[tuple[str, _Given]]:
    prefix = variable(backend)
    longer = tuple(other for other in map(variable, backends) if other != prefix and other.startswith(prefix))
    options = {variable(backend, option): option for option in backend.options.model_fields}
    for name, value in os.environ.items():
        # An empty variable counts as one that is not set.
        if name.startswith(prefix) and value and not (longer and name.startswith(longer)):
            yield options.get(name, name.removeprefix(prefix).lower()), _Given(value, name)


def _is_open(backend: Backend) -> bool:
    return backend.options.model_config.get("extra") == "allow"


def _refusal(backend: Backend, given: Mapping[str, _Given], refused: ValidationError) -> PluginError:
    """Return the error for what pydantic refused, its cause the same error without secrets."""
    from pydantic import ValidationError
    from pydantic_core import InitErrorDetails, PydanticCustomError

    secrets = {name for name, field in backend.options.model_fields.items() if _is_secret(field.annotation, set())}
    details, reasons = [], []
    for line in refused.errors(include_url=False):
        option = str(line["loc"][0]) if line["loc"] else ""
        # What a backend's own validators say may quote a value, and the input of a check of all options holds each.
        hidden = option in secrets or (not option and not secrets.isdisjoint(given))
        reason = f"refused, and not shown since it is secret ({line['type']})" if hidden else line["msg"]
        reason = reason if reason.isprintable() else ascii(reason)
        missing = line["type"] == "missing" and len(line["loc"]) == 1
        # The input of a missing option, too, is all the others.
        value = _HIDDEN if hidden or missing or not option else line["input"]
        reasons.append((option, reason, value, missing))
        kind = PydanticCustomError("refused", "{reason}", {"reason": reason})
        details.append(InitErrorDetails(type=kind, loc=line["loc"][:1], input=value))
    cause = ValidationError.from_exception_data(refused.title, details)
    option, reason, value, missing = reasons[0]
    others = ",".join(sorted({other for other, *_ in reasons[1:]} - {"", option})) or None
    if missing:
        error = PluginError(
            "this backend needs an option: give it as a keyword argument, in the URL's query or in the environment",
            backend=backend.name,
            option=option,
            variable=variable(backend, option),
            others=others,
        )
    else:
        error = PluginError(
            f"{'an option has a value' if option else 'the options have values'} that the backend does not take: "
            f"{reason[:1].lower()}{reason[1:]}",
            backend=backend.name,
            option=option or None,
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


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
