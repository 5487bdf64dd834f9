"""The platform's keys, which seal what clients hold; for staff."""

from datetime import datetime
from typing import Self

from django.http import HttpResponse
from pydantic import Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import not_found
from mcphost.api.representations import Fields, ListPage, NoFields, PagedQuery, Representation
from mcphost.tenants.roles import Permission
from mcphost.vault import lifecycle, listing
from mcphost.vault.errors import UnknownKeyError
from mcphost.vault.listing import KeyRow


class KeyRepresentation(Representation):
    """A key. `until` is when one on standby becomes active, or a retiring one retires, by itself."""

    id: str
    state: str
    since: datetime
    created_at: datetime
    until: datetime | None

    @classmethod
    def of(cls, row: KeyRow) -> Self:
        return cls(**{name: getattr(row, name) for name in KeyRepresentation.model_fields})


class KeyUseRepresentation(Representation):
    """What depends on a key now. `in_flight` are calls whose clients hold a state that it sealed; `lost`
    are those that waited when it was retired early or declared compromised."""

    in_flight: int
    lost: int
    last_sealed_at: datetime | None
    last_opened_at: datetime | None


class RotationFields(Fields):
    """How to rotate. `compromised`: at once, and what the active key sealed is refused. `replaces` is
    the key that was seen as the active one: another one is not replaced."""

    compromised: bool = False
    replaces: str = Field(description="The id of the active key.")


class KeyQuery(PagedQuery):
    """The parameters of the list of keys."""


class KeyListPage(ListPage[KeyRepresentation]):
    """All keys, the newest first."""


def _row(call: ApiCall, key_id: str) -> KeyRow:
    try:
        return listing.key(key_id, call.now)
    except UnknownKeyError:
        raise not_found() from None


def _read(call: ApiCall, key_id: str) -> KeyRepresentation:
    return KeyRepresentation.of(_row(call, key_id))


class KeyCollection(Endpoint):
    """`/keys`."""

    @operation(ApiOperation("List keys", Permission.MANAGE_KEYS, KeyListPage, query=KeyQuery))
    def get(self, call: ApiCall, query: KeyQuery) -> HttpResponse:
        rows = [KeyRepresentation.of(row) for row in listing.keys(call.now)]
        after = call.after()
        ids = [row.id for row in rows]
        start = ids.index(str(after[0])) + 1 if after is not None and after[0] in ids else 0
        return call.show_page(
            KeyListPage, rows[start : start + call.limit + 1], lambda item: [item.id]
        )

    @operation(
        ApiOperation(
            "Rotate: create a key, which becomes the active one",
            Permission.MANAGE_KEYS,
            KeyRepresentation,
            body=RotationFields,
            creates=True,
            example={"replaces": "the id of the active key"},
        )
    )
    def post(self, call: ApiCall, body: RotationFields) -> HttpResponse:
        def rotate() -> KeyRepresentation:
            key = lifecycle.rotate(call.actor, body.compromised, replaces=body.replaces)
            return _read(call, key)

        return call.create(rotate, lambda key: key.id)


class KeyObject(Endpoint):
    """`/keys/{key_id}`."""

    @operation(ApiOperation("Read a key", Permission.MANAGE_KEYS, KeyRepresentation))
    def get(self, call: ApiCall, key_id: str) -> HttpResponse:
        return call.show(_read(call, key_id))


class KeyUse(Endpoint):
    """`/keys/{key_id}/use`: apart, because it changes with each call."""

    @operation(
        ApiOperation("Read what depends on a key", Permission.MANAGE_KEYS, KeyUseRepresentation)
    )
    def get(self, call: ApiCall, key_id: str) -> HttpResponse:
        row = _row(call, key_id)
        names = KeyUseRepresentation.model_fields
        return call.show(KeyUseRepresentation(**{name: getattr(row, name) for name in names}))


class KeyRetirement(Endpoint):
    """`/keys/{key_id}/retire`."""

    @operation(
        ApiOperation(
            "Retire a key early: what it sealed is refused",
            Permission.MANAGE_KEYS,
            KeyRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, key_id: str) -> HttpResponse:
        was = _read(call, key_id).state

        def retire() -> KeyRepresentation:
            lifecycle.retire(key_id, call.actor, was=was)
            return _read(call, key_id)

        return call.change(lambda: _read(call, key_id), retire)


class KeyDestruction(Endpoint):
    """`/keys/{key_id}/destroy`."""

    @operation(
        ApiOperation(
            "Erase the secret of a retired key",
            Permission.MANAGE_KEYS,
            KeyRepresentation,
            body=NoFields,
            conditional=True,
        )
    )
    def post(self, call: ApiCall, key_id: str) -> HttpResponse:
        def destroy() -> KeyRepresentation:
            lifecycle.destroy(key_id, call.actor)
            return _read(call, key_id)

        return call.change(lambda: _read(call, key_id), destroy)
