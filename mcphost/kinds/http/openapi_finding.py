"""What an OpenAPI document offers, extracted in a separate process, within limits.

A document of a few megabytes may take any amount of work, so it is never parsed where other requests
are served. `find` blocks its thread until the process has answered, or was killed.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from mcphost.kinds.http.openapi import FAULT, Operation
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_security import Credential
from mcphost.sandbox.single import (
    JobCrashedError,
    JobLimits,
    JobStoppedError,
    NoProcessError,
    run_single,
)

MAX_LISTED: Final = 400
MAX_FAULT: Final = 4_000
"""Characters of a traceback that are logged."""
LIMITS: Final = JobLimits(seconds=45.0, memory=1536 << 20, result=64 << 20)

_JOB: Final = "mcphost.kinds.http.openapi_job"
_BUSY: Final = "The server has no process free to read documents now. Try again in a moment."

log = logging.getLogger(__name__)


class FindingBusyError(Exception):
    """A document cannot be read now. The message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a document.

    `base_url` replaces its servers; `location` is where it was fetched, which completes a relative
    server. `secrets` are names of secrets by security scheme. Operations whose path begins with
    `below` are listed. Those of `sources` come with their configuration.
    """

    base_url: str = ""
    location: str = ""
    below: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    sources: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class FoundOperation:
    """An operation. `url` is the address that it is sent to, empty if it cannot become a tool.

    `number` is its place in the document, `size` how many bytes its tool adds to `tools/list`. Those that are not `listed` were named in `sources` only.
    """

    operation: Operation
    number: int
    url: str
    listed: bool
    size: int


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """What a document offers. `sources` are all its operations, `left_out` how many fit `below` and
    are not listed. `notes` are sentences about the whole document. `kept` is the document for later calls
    of `find`; empty if it was one."""

    title: str
    notes: Sequence[str]
    sources: frozenset[str]
    operations: Sequence[FoundOperation]
    left_out: int
    kept: bytes


def find(document: bytes, how: Reading, *, kept: bool = False) -> FoundDocument:
    """Describe a document. `kept` says that it is what an earlier call returned.

    Raises FindingBusyError, OpenApiError.
    """
    options = {
        "base_url": how.base_url,
        "location": how.location,
        "below": how.below,
        "secrets": how.secrets,
        "sources": list(how.sources),
        "most": MAX_LISTED,
        "kept": kept,
    }
    try:
        done = run_single(_JOB, orjson.dumps(options) + b"\n" + document, LIMITS)
    except JobCrashedError as crashed:
        log.error("the process that read an OpenAPI document failed: %s", crashed)
        raise OpenApiError(FAULT) from None
    except JobStoppedError as stopped:
        raise OpenApiError(f"The document cannot be read: {stopped}.") from None
    except NoProcessError as none:
        log.warning("no process can be started for an OpenAPI document: %s", none)
        raise FindingBusyError(_BUSY) from None
    line, _, packed = done.partition(b"\n")
    reply = orjson.loads(line)
    if "problem" in reply:
        _log_fault(reply.get("fault"))
        raise OpenApiError(reply["problem"])
    listed = [_operation(operation_json) for operation_json in reply["operations"]]
    return FoundDocument(
        reply["title"],
        reply["notes"],
        frozenset(reply["sources"]),
        listed,
        reply["left_out"],
        packed,
    )


def _log_fault(traceback: str | None) -> None:
    if traceback:
        log.error("an OpenAPI document met a fault of the platform: %s", traceback[-MAX_FAULT:])


def _operation(operation_json: Mapping[str, Any]) -> FoundOperation:
    fields = operation_json["operation"]
    _log_fault(fields["fault"])
    credentials = tuple(Credential(*credential) for credential in fields["credentials"])
    operation = Operation(
        **{**fields, "credentials": credentials, "notes": tuple(fields["notes"])},
    )
    return FoundOperation(
        operation,
        operation_json["number"],
        operation_json["url"],
        operation_json["listed"],
        operation_json["size"],
    )
