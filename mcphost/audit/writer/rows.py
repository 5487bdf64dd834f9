"""Make rows of records: clean texts, encrypt payloads. Runs in the writer's thread."""

import json
from typing import Any, NamedTuple, cast

import orjson

from mcphost.audit.ports import SealedPayload, payload_cipher
from mcphost.audit.records import Record
from mcphost.audit.texts import clean_json, clean_text

_TEXTS_FROM, _TEXTS_TO = Record._fields.index("action"), Record._fields.index("facts")
ENTRY_COLUMNS = (*Record._fields[:_TEXTS_TO], "facts", "commitment")
PAYLOAD_COLUMNS = ("entry", "tenant", "key_id", "ciphertext", "erased_by")

_MAX_TEXTS = 2048


class RecordRefusedError(Exception):
    """The record can never be written; the message says why. Nothing of its job was committed."""


class PreparedRow(NamedTuple):
    """One record ready for a database: texts are clean, the payload is encrypted."""

    record: Record
    texts: tuple[str, ...]
    facts: bytes
    sealed: SealedPayload | None


def prepare(record: Record) -> PreparedRow:
    """Make the row of one record.

    Raises RecordRefusedError if it can never be written, django.db.Error if its key could not be read.
    """
    sealed = None
    if record.payload is not None:
        cipher = payload_cipher()
        if cipher is None:
            reason = "no payload cipher is set, and payloads are never written unencrypted"
            raise RecordRefusedError(reason)
        if record.tenant is None:
            raise RecordRefusedError("a payload without a tenant cannot be encrypted")
        sealed = cipher.commit_and_seal(record.tenant, json_bytes(record.payload))
    facts = json_bytes(clean_json(record.facts)) if record.facts else b"{}"
    texts = cast("tuple[str, ...]", record[_TEXTS_FROM:_TEXTS_TO])
    joined = "".join(texts)  # one check for all of them: nearly always there is nothing to clean
    if not joined.isascii() or "\0" in joined or len(joined) > _MAX_TEXTS:
        texts = tuple(map(clean_text, texts))
    return PreparedRow(record, texts, facts, sealed)


def json_bytes(value: Any) -> bytes:
    """Encode as JSON; with the standard library what orjson refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, separators=(",", ":")).encode("ascii")
