"""Whether an answer is what a request asks for: JSON, and what the request's schema takes."""

from __future__ import annotations

from typing import Any, Final

from statestore.conversations import _json
from statestore.errors import InvalidAnswer, NotSupported
from statestore.ops._events import Request

__all__ = ["check_answer"]

_LONGEST: Final = 200  # characters of what is said of an answer, which may be large


def check_answer(request: Request, response: Any, *, schema: bool) -> None:
    """Refuse an answer that does not fit.

    Nothing is fetched: a schema that refers to another document cannot be checked, and is refused.

    Args:
        request: what is answered.
        response: the answer.
        schema: whether the request's schema is looked at.

    Raises:
        InvalidAnswer: it is no JSON, or the schema does not take it; ``error.facts["path"]`` says where. Or the schema
            is none.
        NotSupported: the package `jsonschema` is not installed.
    """
    facts = {"interrupt": request.interrupt_id}
    try:
        _json.encode(_json.plain(response))
    except (TypeError, ValueError) as error:
        raise InvalidAnswer(f"an answer is JSON: {error}", **facts) from error
    wanted = request.response_schema
    if not schema or wanted is None or wanted is True or wanted == {}:
        return
    try:
        from jsonschema import Draft202012Validator, ValidationError
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for
        from referencing import Registry
    except ImportError as error:
        raise NotSupported(
            "the request has a schema, and what checks answers is not installed: pip install 'statestore[ops]'", **facts
        ) from error
    found: ValidationError | None
    try:
        kind = validator_for(wanted, default=Draft202012Validator)
        kind.check_schema(wanted)
        # An empty registry: whoever wrote the schema must not make us ask the network.
        found = best_match(kind(wanted, registry=Registry()).iter_errors(response))
    except Exception as error:  # a schema from a store may fail in any way
        raise InvalidAnswer("the request's schema cannot be used: answer without the check", **facts) from error
    if found is not None:
        raise InvalidAnswer(
            f"the answer does not fit the schema: {found.message[:_LONGEST]}", **facts, path=found.json_path
        )
