"""Links to accounts: they work once, for two days, and only as long as their issuer may issue them."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.identity import account_links
from mcphost.identity.account_links import JUST_SENT, NO_ADDRESS
from mcphost.identity.models import AccountLink
from mcphost.tenants.errors import InvalidError
from tests.cast import PASSWORD, Cast, Person
from tests.vault.parallel_threads import at_once

pytestmark = pytest.mark.django_db

CHOSEN = "correct-horse-battery"


def acting(person: Person) -> Actor:
    return Actor.person(person.user.pk, person.user.get_username())


def issue(cast: Cast, lock_out: bool = False) -> str:
    user = cast.operator.user
    return account_links.issue(user, actor=acting(cast.staff), lock_out=lock_out).link


def password_is(text: str) -> bool:
    return User.objects.get(username="operator").check_password(text)


def test_a_person_chooses_a_password_once(cast: Cast) -> None:
    link = issue(cast)
    assert password_is(PASSWORD), "the present password works until then"
    assert account_links.account_of(link, timezone.now()) == cast.operator.user
    assert account_links.use(link, CHOSEN, timezone.now()) == cast.operator.user
    assert password_is(CHOSEN)
    assert account_links.use(link, "another-one-of-them", timezone.now()) is None
    assert password_is(CHOSEN)
    issued, used = Entry.objects.filter(action__startswith="user.").order_by("id")
    assert (issued.action, issued.actor_label) == ("user.link_issued", "staff")
    assert issued.facts["user"] == "operator"
    assert (used.action, used.actor_label) == ("user.password_set", "operator")
    assert used.facts == {"link_of": "staff", "user": "operator"}


def test_only_a_digest_of_a_link_is_stored(cast: Cast) -> None:
    link = issue(cast)
    row = AccountLink.objects.get()
    assert link not in str([getattr(row, field.name) for field in AccountLink._meta.fields])
    assert link not in repr(account_links.IssuedAccountLink("x", row.expires_at, link))
    assert not Entry.objects.filter(facts__icontains=link[-20:]).exists()


def _expire(cast: Cast) -> None:
    AccountLink.objects.update(expires_at=timezone.now())


SPOILT: dict[str, Callable[[Cast], object]] = {
    "it has expired": _expire,
    "a newer one was issued": issue,
    "the account is not active": lambda cast: User.objects.filter(username="operator").update(
        is_active=False
    ),
    "the issuer is no longer staff": lambda cast: User.objects.filter(username="staff").update(
        is_staff=False
    ),
    "the issuer was deactivated": lambda cast: User.objects.filter(username="staff").update(
        is_active=False
    ),
    "the issuer was deleted": lambda cast: AccountLink.objects.update(issuer=None),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_link_stops_working(cast: Cast, spoil: Callable[[Cast], object]) -> None:
    link = issue(cast)
    spoil(cast)
    assert account_links.account_of(link, timezone.now()) is None
    assert account_links.use(link, CHOSEN, timezone.now()) is None
    assert password_is(PASSWORD)


def test_a_link_can_stop_the_present_password_at_once(cast: Cast) -> None:
    link = issue(cast, lock_out=True)
    assert not password_is(PASSWORD)
    assert Entry.objects.get(action="user.link_issued").facts["locked_out"] is True
    assert account_links.use(link, CHOSEN, timezone.now()) is not None


@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_uses_is_refused(cast: Cast) -> None:
    link = issue(cast)
    results = at_once(lambda: account_links.use(link, CHOSEN, timezone.now()) is not None, 2)
    assert sorted(results) == [False, True]


def test_an_owner_has_a_link_made_for_a_member_with_an_address(cast: Cast) -> None:
    owner, user = acting(cast.owner), cast.operator.user

    def send() -> str:
        return account_links.issue_for_member(cast.acme.id, user, actor=owner).link

    with pytest.raises(InvalidError, match=NO_ADDRESS[:20]):
        send()
    user.email = "operator@x.example"
    user.save(update_fields=["email"])
    link = send()
    assert Entry.objects.get(action="user.link_issued").tenant == cast.acme.id
    with pytest.raises(InvalidError, match=JUST_SENT[:20]):
        send()
    AccountLink.objects.update(created_at=timezone.now() - timedelta(hours=1))
    assert send() != link
    assert account_links.account_of(link, timezone.now()) is None


def test_owners_have_no_links_made_for_people_of_other_tenants(cast: Cast) -> None:
    stranger, owner = cast.stranger.user, acting(cast.owner)
    stranger.email = "stranger@x.example"
    stranger.save(update_fields=["email"])
    with pytest.raises(InvalidError, match=NO_ADDRESS[:20]):
        account_links.issue_for_member(cast.acme.id, stranger, actor=owner)
    with pytest.raises(PermissionDenied):
        account_links.issue_for_member(cast.globex.id, stranger, actor=owner)
    with pytest.raises(PermissionDenied):
        account_links.issue(cast.operator.user, actor=owner)
    assert not AccountLink.objects.exists()
