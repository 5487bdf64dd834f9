"""Changes to users, which are Django's own model. Each change is recorded in an entry.

All raise PermissionDenied if the actor no longer has the right. Users are always changed with
`save()`: its signal announces in the change log that tokens may have stopped working.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.tenants.access import lock_account, require_still
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import Permission
from mcphost.tenants.services import keep_owners

NAME_TAKEN = "A user with that name already exists."
CHANGED = "Your password was changed meanwhile."


@dataclass(frozen=True, slots=True)
class PersonFields:
    """The fields of a user that staff may set."""

    first_name: str = ""
    last_name: str = ""
    email: str = ""
    is_active: bool = True
    is_staff: bool = False

    @classmethod
    def of(cls, user: User) -> "PersonFields":
        return cls(user.first_name, user.last_name, user.email, user.is_active, user.is_staff)


@transaction.atomic
def create(username: str, fields: PersonFields, actor: Actor) -> User:
    """Create a user, who chooses a password by a link (`identity.account_links`).

    Raises InvalidError if the name is taken.
    """
    require_still(actor, None, Permission.MANAGE_MEMBERS)
    user = User(username=username, **asdict(fields))
    user.set_unusable_password()
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise InvalidError({"username": [NAME_TAKEN]}) from None
    facts = {"is_active": fields.is_active, "is_staff": fields.is_staff}
    _note("user.created", user, actor, facts)
    return user


def locked_by(actor: Actor, user_id: int) -> User:
    """Return a user, locked until the transaction ends, and so is the staff member who changes it.

    Raises PermissionDenied if the actor may no longer change users: of two who take each other's
    access at once, one keeps it. Raises User.DoesNotExist.
    """
    ids = {user_id, *([int(actor.id)] if actor.kind == "person" else [])}
    # Locked in one order, so that two such changes at once do not deadlock. Rows that refer to them
    # can still be added (`no_key`).
    locking = User.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    rows = {row.pk: row for row in locking}
    require_still(actor, None, Permission.MANAGE_MEMBERS)
    if user_id not in rows:
        raise User.DoesNotExist
    return rows[user_id]


@transaction.atomic
def update(user: User, fields: PersonFields, actor: Actor) -> User:
    """Change a user, and return it. Without a difference, nothing is written.

    Raises InvalidError when deactivating the last owner of an open tenant, and User.DoesNotExist.
    """
    user = locked_by(actor, user.pk)
    before, after = asdict(PersonFields.of(user)), asdict(fields)
    changed = {name: value for name, value in after.items() if value != before[name]}
    if not changed:
        return user
    if changed.get("is_active") is False:
        keep_owners(user)
    for name, value in changed.items():
        setattr(user, name, value)
    user.save(update_fields=list(changed))
    switches: dict[str, Any] = {
        name: changed[name] for name in ("is_active", "is_staff") if name in changed
    }
    _note("user.updated", user, actor, {"changed": sorted(changed), **switches})
    return user


@transaction.atomic
def set_password(
    user: User,
    password: str,
    actor: Actor,
    *,
    checked: str | None = None,
) -> User:
    """Set a user's password, which signs them out everywhere, and return the user.

    `checked` is for users who change their own: the stored hash that their session and their current
    password were checked with. If another one is stored by now, such as that of a password that staff
    set to shut an intruder out, it stays. Raises InvalidError then, and User.DoesNotExist.
    """
    own = lock_account(actor) if checked is not None and actor.is_person(user.pk) else None
    user = own or locked_by(actor, user.pk)
    if checked is not None and user.password != checked:
        raise InvalidError({"present": [CHANGED]})
    user.set_password(password)
    user.save(update_fields=["password"])
    _note("user.password_set", user, actor, {})
    return user


def _note(action: str, user: User, actor: Actor, facts: Mapping[str, Any]) -> None:
    named = {**facts, "user": user.get_username()}
    record(action, actor=actor, target=str(user.pk), facts=named)
