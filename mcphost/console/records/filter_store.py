"""Save, share, rename and delete filters of the lists of calls and of questions.

All raise PermissionDenied if the user may no longer read the list.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Case, Q, QuerySet, Value, When

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.console.models import FilteredList, SavedFilter
from mcphost.tenants.access import allowed, lock_tenant, require_still
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_OWN = 50
MAX_SHOWN = 200
NAME_LIMIT = 60
QUERY_LIMIT = 2000
"""Characters of a query string: sockets of live lists and proxies refuse long addresses, and a list shows
the addresses of all its filters."""


@dataclass(frozen=True, slots=True)
class FilterFields:
    """What the author of a saved filter decides."""

    name: str
    shared: bool


def visible(
    user: User, tenant: Tenant | None, listing: FilteredList = FilteredList.CALLS
) -> QuerySet[SavedFilter]:
    """Return the user's own filters of a list, then those that others share there."""
    of_list = SavedFilter.objects.filter(tenant=tenant, listing=listing)
    filters = of_list.filter(Q(author=user.pk) | Q(shared=True))
    own_first = Case(When(author=user.pk, then=Value(0)), default=Value(1))
    return filters.select_related("author").order_by(own_first, "name", "id")


def may_delete(user: User, saved: SavedFilter) -> bool:
    """Return whether the user may delete a filter: the author may, and owners a shared one."""
    if saved.author_id == user.pk:
        return True
    return saved.shared and may_delete_shared(user, saved.tenant)


def may_delete_shared(user: User, tenant: Tenant | None) -> bool:
    """Return whether the user may delete what others share in a list."""
    return allowed(user, tenant, Permission.MANAGE_TENANT)


def save(
    user: User,
    tenant: Tenant | None,
    fields: FilterFields,
    query: str,
    listing: FilteredList = FilteredList.CALLS,
) -> SavedFilter:
    """Save a filter. Raises InvalidError if the name is taken or wrong, or there are too many."""
    name = _name(fields.name)
    if not query:
        raise InvalidError({"": ["No filter is set. Set one in the list, then save it."]})
    if len(query) > QUERY_LIMIT:
        raise InvalidError({"": ["The texts of the filter are too long together to be saved."]})
    with _unique(), transaction.atomic():
        _lock_reader(user, tenant)  # also so that the number is exact
        own = SavedFilter.objects.filter(author=user.pk, tenant=tenant, listing=listing)
        if own.count() >= MAX_OWN:
            raise InvalidError(
                {"": [f"You have {MAX_OWN} filters of this list. Delete one first."]}
            )
        made = SavedFilter.objects.create(
            author=user,
            tenant=tenant,
            listing=listing,
            name=name,
            query=query,
            shared=fields.shared,
        )
        if made.shared:
            _record("filter.shared", user, made)
    return made


def change(user: User, filter_id: UUID, fields: FilterFields) -> SavedFilter:
    """Rename a filter of the user, share it, or stop sharing it.

    Raises InvalidError as `save`, and SavedFilter.DoesNotExist for one of another user.
    """
    name = _name(fields.name)
    with _unique(), transaction.atomic():
        saved = _locked(user, SavedFilter.objects.filter(pk=filter_id, author=user.pk))
        if saved is None:
            raise SavedFilter.DoesNotExist
        was_name, was_shared = saved.name, saved.shared
        saved.name, saved.shared = name, fields.shared
        saved.save(update_fields=["name", "shared"])
        if saved.shared and not was_shared:
            _record("filter.shared", user, saved)
        elif was_shared and not saved.shared:
            _record("filter.unshared", user, saved)
        elif saved.shared and saved.name != was_name:
            _record("filter.renamed", user, saved, was=was_name)
    return saved


def delete(user: User, filter_id: UUID) -> bool:
    """Delete a filter; return whether there was one that the user may delete."""
    with transaction.atomic():
        saved = _locked(user, SavedFilter.objects.filter(pk=filter_id))
        if saved is None or not may_delete(user, saved):
            return False
        SavedFilter.objects.filter(pk=filter_id).delete()
        if saved.shared:
            _record("filter.deleted", user, saved, author=saved.author.get_username())
    return True


def _locked(user: User, filters: QuerySet[SavedFilter]) -> SavedFilter | None:
    """Return the filter as it is stored once its list and its row are locked; None if it is gone.

    Its author may just have shared it, or ended that.
    """
    stored = filters.select_related("tenant").first()
    if stored is None:
        return None
    _lock_reader(user, stored.tenant)
    locking = filters.select_for_update(of=("self",))
    return locking.select_related("author", "tenant").first()


def _lock_reader(user: User, tenant: Tenant | None) -> None:
    reader = Actor.person(user.pk, user.get_username())
    if tenant is None:
        require_still(reader, None, Permission.VIEW_RECORDS)
    else:
        lock_tenant(tenant.pk, reader, Permission.VIEW_RECORDS)


def _record(action: str, user: User, saved: SavedFilter, **facts: str) -> None:
    record(
        action,
        actor=Actor.person(user.pk, user.get_username()),
        tenant=saved.tenant_id,
        target=saved.name,
        facts={"query": saved.query, **facts},
    )


@contextmanager
def _unique() -> Iterator[None]:
    """Turn the violation of a unique name into a sentence beside it."""
    try:
        yield
    except IntegrityError:
        raise InvalidError({"name": ["You have a filter of this name already."]}) from None


def _name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > NAME_LIMIT:
        raise InvalidError({"name": [f"Give it a name of 1 to {NAME_LIMIT} characters."]})
    if not all(character.isprintable() for character in name):
        raise InvalidError({"name": ["The name has a character that cannot be seen."]})
    return name
