"""In which words each storage says that it fails, and where in a request it is told the object's name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from tests.http1 import Message
from tests.proxy import Fault

__all__ = ["AZURE", "Dialect", "GCS", "S3"]

_NAME = re.compile(rb'"name": ?"([^"]+)"')


def _as_s3(status: int, code: str) -> tuple[str, str]:
    said = f"<Error><Code>{code}</Code><Message>injected</Message></Error>"
    return "application/xml", f'<?xml version="1.0" encoding="UTF-8"?>{said}'


def _as_azure(status: int, code: str) -> tuple[str, str]:
    said = f"<Error><Code>{code}</Code><Message>injected\nRequestId:0\nTime:0</Message></Error>"
    return "application/xml", f'\ufeff<?xml version="1.0" encoding="utf-8"?>{said}'


def _as_gcs(status: int, code: str) -> tuple[str, str]:
    domain = "usageLimits" if status == 429 else "global"
    errors = [{"message": "injected", "domain": domain, "reason": code}]
    said = {"error": {"code": status, "message": "injected", "errors": errors}}
    return "application/json; charset=UTF-8", json.dumps(said)


@dataclass(frozen=True)
class Dialect:
    """How one storage talks.

    Attributes:
        words: status and code of each fault that is an answer.
        spell: content type and body of such an answer.
        header: which header tells the code too; "" where none does.
    """

    words: Mapping[Fault, tuple[int, str]]
    spell: Callable[[int, str], tuple[str, str]]
    header: str = ""

    def error(self, fault: Fault) -> Message:
        """Return what the storage answers."""
        status, code = self.words[fault]
        kind, text = self.spell(status, code)
        body = text.encode()
        headers = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        if self.header:
            headers.append((self.header, code))
        return Message(f"HTTP/1.1 {status} Injected", headers, [body])

    def target(self, message: Message) -> str:
        """Return path and query of a request; where its body names the object, as if the query did."""
        target = message.first.split(" ", 2)[1]
        if "uploadType=multipart" in target:
            found = _NAME.search(b"".join(message.body))
            target += f"&name={quote(found[1], safe='')}" if found else ""
        return target


def _words(slow: tuple[int, str], conflict: str, error: tuple[int, str]) -> Mapping[Fault, tuple[int, str]]:
    return {
        Fault.SLOW_DOWN: slow,
        Fault.CONFLICT: (409, conflict),
        Fault.ERROR_BEFORE: error,
        Fault.ERROR_AFTER: error,
    }


# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
S3: Final = Dialect(_words((503, "SlowDown"), "ConditionalRequestConflict", (500, "InternalError")), _as_s3)

# https://cloud.google.com/storage/docs/json_api/v1/status-codes
GCS: Final = Dialect(_words((429, "rateLimitExceeded"), "conflict", (503, "backendError")), _as_gcs)

# https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes, and the common ones
AZURE: Final = Dialect(
    _words((503, "ServerBusy"), "PendingCopyOperation", (500, "InternalError")), _as_azure, "x-ms-error-code"
)
