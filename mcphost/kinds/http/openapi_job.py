"""Reads an OpenAPI document in a process of its own (`sandbox.single`), and describes its operations.

A job is one line of JSON, the options, and then the document. Its result is one line of JSON, the
reply, and then the document as compressed JSON, which later jobs read: for them it is `kept`.
"""

import traceback
import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcphost.kinds.http.openapi import FAULT, Operation, document_notes, operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.kinds.http.openapi_servers import ServerAddress
from mcphost.kinds.http.openapi_swagger import as_openapi
from mcphost.protocol.tools import ToolListing, describe_tool

MAX_KEPT: Final = 32 * 1024 * 1024
"""The largest document in bytes, as JSON."""
_COMPRESSION: Final = 1


def run(job: bytes) -> bytes:
    """Do a job. A document that cannot be read is a result, too: its `problem` says why, and `fault`
    is the traceback if that is an error of ours, for the log of the process that asked."""
    line, _, data = job.partition(b"\n")
    options = orjson.loads(line)
    try:
        if options["kept"]:
            document = read(zlib.decompressobj().decompress(data, MAX_KEPT), MAX_KEPT)
        else:
            document = read(data)
        reply = _described(as_openapi(document), options)
        kept = b"" if options["kept"] else _packed(document)
    except OpenApiError as error:
        reply, kept = {"problem": str(error)}, b""
    except RecursionError:
        reply, kept = {"problem": "The document is nested too deep."}, b""
    except MemoryError:
        raise  # the status of this process says it
    except Exception:  # noqa: BLE001 - logged by the process that asked: this one has no log
        reply, kept = {"problem": FAULT, "fault": traceback.format_exc()}, b""
    return orjson.dumps(reply) + b"\n" + kept


def _packed(document: Mapping[str, Any]) -> bytes:
    written = orjson.dumps(document)
    if len(written) > MAX_KEPT:
        raise OpenApiError("With its YAML aliases written out, the document is too large.")
    return zlib.compress(written, _COMPRESSION)


def _described(document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    below, named, limit = options["below"], frozenset(options["sources"]), options["most"]
    listed = 0

    def is_selected(source: str) -> bool:
        nonlocal listed
        fits = source.partition(" ")[2].startswith(below)
        listed += fits
        return source in named or (fits and listed <= limit)

    sources: list[str] = []
    selected: list[dict[str, Any]] = []
    fitting = 0
    address = ServerAddress(options["base_url"], options["location"])
    for operation in operations(document, address, options["secrets"], is_selected):
        sources.append(operation.source)
        fits = operation.source.partition(" ")[2].startswith(below)
        fitting += fits
        if operation.source in named or (fits and fitting <= limit):
            selected.append(_as_json(operation, len(sources) - 1, operation.source in named, fits))
    info = document.get("info")
    title = info.get("title") if isinstance(info, Mapping) else None
    return {
        "title": title[:200] if isinstance(title, str) else "",
        "notes": document_notes(document),
        "left_out": max(0, fitting - limit),
        "sources": sources,
        "operations": selected,
    }


def _as_json(operation: Operation, number: int, whole: bool, listed: bool) -> dict[str, Any]:
    return {
        "number": number,
        "listed": listed,
        "url": operation.config["request"]["url"] if operation.config else "",
        "size": _size(operation) if operation.config else 0,
        "operation": {
            **operation._asdict(),
            "config": operation.config if whole else None,
            "credentials": [tuple(credential) for credential in operation.credentials],
        },
    }


def _size(operation: Operation) -> int:
    """Return the bytes of a tool in `tools/list`."""
    schema = operation.config["input_schema"] if operation.config else {}
    listing = ToolListing(operation.name, schema, operation.title, operation.description)
    return len(orjson.dumps(describe_tool(listing)))
