"""One request to the API after its checks, and the ways to answer it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request

from mcphost.api import etags
from mcphost.api.operations import ApiOperation
from mcphost.api.paging import Key, cursor_after, key_of, list_of
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, not_found, pointer_of
from mcphost.api.replays import Repeatable
from mcphost.api.representations import (
    Fields,
    ListPage,
    ListQuery,
    NoFields,
    PagedQuery,
    Representation,
    wire_names,
)
from mcphost.audit.records import Actor
from mcphost.identity.api_access import ApiCredential
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.models import Tenant

JSON = "application/json"
R = TypeVar("R", bound=Representation)


@dataclass(slots=True)
class ApiCall:
    """An admitted request.

    `url_tenant` is the tenant of the address, `if_match` are the ETags in If-Match, `body` is the body as
    it was validated. `base` is the object that a merge patch was applied to. `read_only` has the members
    of the body that only the server writes; they must have their present values. `repeatable` has its
    Idempotency-Key.
    """

    request: Request
    operation: ApiOperation
    credential: ApiCredential
    url_tenant: Tenant | None
    query: ListQuery
    if_match: frozenset[str] = frozenset()
    body: Fields = field(default_factory=NoFields)
    base: Representation | None = None
    read_only: Mapping[str, Any] = field(default_factory=dict)
    repeatable: Repeatable | None = None
    now: datetime = field(default_factory=timezone.now)

    @property
    def tenant(self) -> Tenant:
        """The tenant of the address."""
        assert self.url_tenant is not None
        return self.url_tenant

    @property
    def actor(self) -> Actor:
        """The caller, in entries of the audit log."""
        return self.credential.actor

    @property
    def caller(self) -> str:
        """The key of the credential."""
        return self.credential.token_id or f"session {self.credential.user.pk}"

    def show(self, shown: Representation) -> HttpResponse:
        """Answer with an object and its ETag; 304 if the client has it already."""
        response = _response(shown)
        if etags.is_unchanged(self.request.headers.get("If-None-Match"), response.headers["ETag"]):
            return HttpResponse(status=304, headers={"ETag": response.headers["ETag"]})
        return response

    def after(self) -> Key | None:
        """Return the key of the row after which the page begins; None for the first page."""
        return key_of(self._paged.cursor, self._listed)

    @property
    def limit(self) -> int:
        """The most items of the page."""
        return self._paged.limit

    @property
    def _paged(self) -> PagedQuery:
        assert isinstance(self.query, PagedQuery)
        return self.query

    @property
    def _listed(self) -> str:
        return list_of(self.request.path, self._paged.filters())

    def show_page(
        self, page: type[ListPage[R]], items: Sequence[R], key: Callable[[R], Key]
    ) -> HttpResponse:
        """Answer with a page of a list. `items` are the rows after `after`: one more than `limit` if
        others follow."""
        shown = items[: self.limit]
        last = key(shown[-1]) if len(items) > len(shown) else None
        return self.show_portion(page, shown, last)

    def show_portion(
        self, page: type[ListPage[R]], items: Sequence[R], last: Key | None
    ) -> HttpResponse:
        """Answer with a page whose selector says itself where the next one begins: after `last`."""
        body = page(items=list(items), next=self.cursor(last)).encoded()
        return HttpResponse(body, content_type=JSON)

    def cursor(self, last: Key | None) -> str | None:
        """Return the cursor of what follows the row `last` of this list; None at the end."""
        return None if last is None else cursor_after(self._listed, last)

    def create(self, write: Callable[[], R], address: Callable[[R], str]) -> HttpResponse:
        """Create an object in one transaction, and answer with it; once for one Idempotency-Key.

        `address` returns the last part of its address, which follows that of the list.
        """

        def respond() -> HttpResponse:
            created = write()
            self._check_stored(created)
            response = _response(created, status=201)
            response.headers["Location"] = f"{self.request.path}/{address(created)}"
            return response

        return self._respond_once(respond)

    def perform(self, act: Callable[[], R]) -> HttpResponse:
        """Do something that needs no ETag, in one transaction; once for one Idempotency-Key."""
        return self._respond_once(lambda: _response(act()))

    def perform_claimed(self, respond: Callable[[], HttpResponse]) -> HttpResponse:
        """Do something that acts before the transaction of `perform`, as a tool that is run does; once
        for one Idempotency-Key. A repetition meanwhile is refused, in whichever process."""
        if self.repeatable is None:
            return respond()
        if not self.repeatable.claim():
            replay = self.repeatable.replay()
            assert replay is not None
            return replay
        try:
            return respond()
        except BaseException:
            self.repeatable.release()
            raise

    def change(
        self, read: Callable[[], Representation | None], write: Callable[[], R]
    ) -> HttpResponse:
        """Change an object in one transaction, if If-Match has its ETag; answer with it.

        `read` returns the object, or None if there is none. What belongs to the tenant of the address
        is locked with the tenant before; `read` must lock anything else.
        """

        def respond() -> HttpResponse:
            self._check_conditions(read)
            changed = write()
            self._check_stored(changed)
            return _response(changed)

        return self._respond_once(respond)

    def remove(
        self, read: Callable[[], Representation | None], delete: Callable[[], object]
    ) -> HttpResponse:
        """Delete an object in one transaction, if If-Match has its ETag; `read` as in `change`."""
        with transaction.atomic():
            self._check_conditions(read)
            delete()
        return HttpResponse(status=204)

    def _respond_once(self, respond: Callable[[], HttpResponse]) -> HttpResponse:
        with transaction.atomic():
            if self.repeatable is None:
                return respond()
            if not self.repeatable.reserve():
                replay = self.repeatable.replay()
                assert replay is not None
                return replay
            response = respond()
            self.repeatable.store(response, self.operation.shown_once)
            return response

    def _check_conditions(self, read: Callable[[], Representation | None]) -> None:
        if self.url_tenant is not None:
            lock_open_tenant(self.url_tenant.pk, self.actor, self.operation.permission)
        before = read()
        if before is None:
            raise not_found()
        etags.check_tags(self.if_match, before.etag())
        if self.base is not None and self.base != before:
            raise etags.changed_meanwhile()
        faults = [
            FieldFault(pointer_of([name]), "read_only", "Only the server changes it.")
            for name, value in self.read_only.items()
            if not before.has(name, value)
        ]
        if faults:
            message = "The body changes fields that cannot be written."
            raise ProblemError(ProblemType.INVALID, message, faults)

    def _check_stored(self, stored: Representation) -> None:
        """Refuse a value that would be stored in another form than it was sent."""
        members = stored.dump()
        faults = [
            FieldFault(
                pointer_of([name]), "not_normal", f"It would be stored as {members[name]!r:.200}."
            )
            for name, value in self.body.model_dump(mode="json", by_alias=True).items()
            if name in members and members[name] != value
        ]
        if faults:
            message = "Some values would be stored in another form. Send them in that form."
            raise ProblemError(ProblemType.INVALID, message, faults)


def read_only_names(operation: ApiOperation) -> frozenset[str]:
    """Return the members of an operation's object that only the server writes."""
    shown = () if operation.returns is None else wire_names(operation.returns)
    return frozenset(shown).difference(wire_names(operation.body))


def _response(shown: Representation, status: int = 200) -> HttpResponse:
    headers = {"ETag": shown.etag()}
    return HttpResponse(shown.encoded(), status=status, content_type=JSON, headers=headers)
