"""Changes to users. They are Django's, so they are saved as it saves them; each leaves an entry.

Users are always changed with `save()`: a signal tells the feed that tokens may have died.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.tenants.errors import InvalidError

TAKEN = "There is a user of that name."


@dataclass(frozen=True, slots=True)
class PersonFields:
    """What staff may set of a user."""

    first_name: str = ""
    last_name: str = ""
    email: str = ""
    is_active: bool = True
    is_staff: bool = False

    @classmethod
    def of(cls, user: User) -> "PersonFields":
        return cls(user.first_name, user.last_name, user.email, user.is_active, user.is_staff)


@transaction.atomic
def create(username: str, password: str, fields: PersonFields, who: Actor) -> User:
    """Make a user who can sign in; what they may do is up to the tenants.

    Raises InvalidError if somebody else has the name.
    """
    user = User(username=username, **asdict(fields))
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError:
        raise InvalidError({"username": [TAKEN]}) from None
    facts = {"is_active": fields.is_active, "is_staff": fields.is_staff}
    _note("user.created", user, who, facts)
    return user


@transaction.atomic
def update(user: User, fields: PersonFields, who: Actor) -> None:
    """Change a user. No difference changes nothing."""
    before, after = asdict(PersonFields.of(user)), asdict(fields)
    changed = {name: value for name, value in after.items() if value != before[name]}
    if not changed:
        return
    for name, value in changed.items():
        setattr(user, name, value)
    user.save(update_fields=list(changed))
    switches: dict[str, Any] = {
        name: changed[name] for name in ("is_active", "is_staff") if name in changed
    }
    _note("user.updated", user, who, {"changed": sorted(changed), **switches})


@transaction.atomic
def set_password(user: User, password: str, who: Actor) -> None:
    """Give a user another password; they are signed out everywhere."""
    user.set_password(password)
    user.save(update_fields=["password"])
    _note("user.password_set", user, who, {})


def _note(action: str, user: User, who: Actor, facts: Mapping[str, Any]) -> None:
    named = {**facts, "user": user.get_username()}
    record(action, actor=who, target=str(user.pk), facts=named)
