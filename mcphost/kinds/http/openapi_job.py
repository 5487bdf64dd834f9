"""Reads an OpenAPI document in a process of its own (`sandbox.single`), and describes its operations.

A job is one line of JSON, what is wanted, and then the document. Its result is one line of JSON, what
was found, and then the document as compressed JSON, which later jobs read: for them it is `kept`.
"""

import traceback
import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcphost.kinds.http.openapi import FAULT, Operation, document_notes, operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.kinds.http.openapi_servers import ServerPlace
from mcphost.protocol.tools import ToolListing, describe_tool

MOST_KEPT: Final = 32 * 1024 * 1024
"""The largest document in bytes, as JSON."""
_COMPRESSION: Final = 1


def run(job: bytes) -> bytes:
    """Do a job. A document that cannot be read is a result, too: its `problem` says why, and `fault`
    is the traceback if that is an error of ours, for the log of the process that asked."""
    line, _, data = job.partition(b"\n")
    wanted = orjson.loads(line)
    try:
        document = read(_unpacked(data), MOST_KEPT) if wanted["kept"] else read(data)
        found = _described(document, wanted)
        kept = b"" if wanted["kept"] else _packed(document)
    except OpenApiError as error:
        found, kept = {"problem": str(error)}, b""
    except RecursionError:
        found, kept = {"problem": "The document is nested too deep."}, b""
    except MemoryError:
        raise  # the status of this process says it
    except Exception:  # noqa: BLE001 - logged by the process that asked: this one has no log
        found, kept = {"problem": FAULT, "fault": traceback.format_exc()}, b""
    return orjson.dumps(found) + b"\n" + kept


def _unpacked(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data, MOST_KEPT)


def _packed(document: Mapping[str, Any]) -> bytes:
    written = orjson.dumps(document)
    if len(written) > MOST_KEPT:
        raise OpenApiError("With its YAML aliases written out, the document is too large.")
    return zlib.compress(written, _COMPRESSION)


def _described(document: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    below, named, most = wanted["below"], frozenset(wanted["sources"]), wanted["most"]
    listed = 0

    def is_wanted(source: str) -> bool:
        nonlocal listed
        fits = source.partition(" ")[2].startswith(below)
        listed += fits
        return source in named or (fits and listed <= most)

    sources: list[str] = []
    found: list[dict[str, Any]] = []
    fitting = 0
    place = ServerPlace(wanted["base_url"], wanted["location"])
    for each in operations(document, place, wanted["secrets"], is_wanted):
        sources.append(each.source)
        fits = each.source.partition(" ")[2].startswith(below)
        fitting += fits
        if each.source in named or (fits and fitting <= most):
            found.append(_as_json(each, len(sources) - 1, each.source in named, fits))
    info = document.get("info")
    title = info.get("title") if isinstance(info, Mapping) else None
    return {
        "title": title[:200] if isinstance(title, str) else "",
        "notes": document_notes(document),
        "left_out": max(0, fitting - most),
        "sources": sources,
        "operations": found,
    }


def _as_json(each: Operation, number: int, whole: bool, listed: bool) -> dict[str, Any]:
    return {
        "number": number,
        "listed": listed,
        "url": each.config["request"]["url"] if each.config else "",
        "size": _size(each) if each.config else 0,
        "operation": {
            **each._asdict(),
            "config": each.config if whole else None,
            "credentials": [tuple(one) for one in each.credentials],
        },
    }


def _size(each: Operation) -> int:
    """Return the bytes of a tool in `tools/list`."""
    schema = each.config["input_schema"] if each.config else {}
    listing = ToolListing(each.name, schema, each.title, each.description)
    return len(orjson.dumps(describe_tool(listing)))
