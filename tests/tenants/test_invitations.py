"""Tests of invitations: only the invited account can accept, once, while the offer holds."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.serializers import serialize
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.audit.records import Actor
from mcphost.feed.models import Change
from mcphost.tenants import invitations
from mcphost.tenants.errors import InvalidError, UnknownTenantError
from mcphost.tenants.invitations import InvitationState, IssuedInvitation
from mcphost.tenants.models import Invitation, Membership
from mcphost.tenants.roles import Role
from mcphost.tenants.services import close_tenant, remove_member, set_member
from tests.cast import ACTOR, Cast
from tests.vault.parallel_threads import at_once

pytestmark = pytest.mark.django_db

CountQueries = Callable[[int], AbstractContextManager[Any]]


def _invite(
    cast: Cast, name: str = "newcomer", role: Role = Role.OPERATOR, days: int = 7
) -> IssuedInvitation:
    return invitations.invite(
        cast.acme.id,
        name,
        role,
        actor=Actor.person(cast.owner.user.pk, cast.owner.user.get_username()),
        days=days,
    )


def _newcomer() -> User:
    return User.objects.create_user("newcomer")


def _role(user: User) -> str | None:
    found = Membership.objects.filter(tenant__slug="acme", user=user)
    return found.values_list("role", flat=True).first()


def _states(cast: Cast) -> list[InvitationState]:
    return [each.state for each in invitations.listing(cast.acme.id, timezone.now())]


def _actions() -> list[str]:
    found = Entry.objects.filter(action__contains="invit").order_by("id")
    return list(found.values_list("action", flat=True))


def test_an_invited_user_becomes_a_member_by_accepting(cast: Cast) -> None:
    user, issued = _newcomer(), _invite(cast)
    assert _role(user) is None
    offer = invitations.offer(issued.link, user, timezone.now())
    assert offer is not None
    assert (offer.slug, offer.role, offer.invited_by) == ("acme", Role.OPERATOR, "owner")
    assert invitations.accept(issued.link, user, timezone.now())
    membership = Membership.objects.get(tenant=cast.acme.id, user=user)
    assert (membership.role, membership.added_by) == ("operator", "owner")
    assert membership.accepted_at is not None
    entry = Entry.objects.get(action="invitation.accepted")
    assert (entry.tenant, entry.actor_id, entry.actor_label) == (
        cast.acme.id,
        str(user.pk),
        "newcomer",
    )
    assert entry.facts["invited_by"] == "owner"
    assert Change.objects.filter(name="member", object_id=str(user.pk)).count() == 1
    assert _states(cast) == [InvitationState.ACCEPTED]


def test_a_declined_invitation_creates_no_member_and_is_recorded(cast: Cast) -> None:
    user, issued = _newcomer(), _invite(cast)
    assert invitations.decline(issued.link, user, timezone.now())
    assert _role(user) is None
    assert _actions() == ["member.invited", "invitation.declined"]
    assert not invitations.accept(issued.link, user, timezone.now())
    assert _states(cast) == [InvitationState.DECLINED]


def test_only_a_digest_of_the_link_is_stored(cast: Cast) -> None:
    issued = _invite(cast)
    secret = issued.link.removeprefix(invitations.PREFIX)
    assert len(secret) == 43
    kept = serialize("json", [*Invitation.objects.all(), *Entry.objects.all()])
    assert secret not in kept
    assert secret not in f"{issued!r} {issued}"


@pytest.mark.parametrize("name", ["owner", "operator", "stranger", "staff"])
def test_an_invitation_link_works_for_no_other_account(cast: Cast, name: str) -> None:
    _newcomer()
    issued, user = _invite(cast), getattr(cast, name).user
    before = Membership.objects.count()
    assert invitations.offer(issued.link, user, timezone.now()) is None
    assert not invitations.accept(issued.link, user, timezone.now())
    assert not invitations.decline(issued.link, user, timezone.now())
    assert Membership.objects.count() == before
    assert _states(cast) == [InvitationState.OPEN]


def test_a_foreign_link_costs_the_same_queries_as_an_unknown_one(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    _newcomer()
    now, stranger = timezone.now(), cast.stranger.user
    link = _invite(cast).link
    for each in (link, invitations.PREFIX + "x" * 43, "x", "\ud800"):
        with django_assert_num_queries(1):
            assert invitations.offer(each, stranger, now) is None


@pytest.mark.parametrize("name", ["existing", "unknown", "inactive"])
def test_inviting_costs_the_same_queries_whether_or_not_the_account_exists(
    cast: Cast, django_assert_num_queries: CountQueries, name: str
) -> None:
    User.objects.create_user("existing")
    User.objects.create_user("inactive", is_active=False)
    # A savepoint, the account and the role of the inviter, the tenant, the membership, the earlier
    # invitation, how many are open, the row, the record, and the release.
    with django_assert_num_queries(11):
        _invite(cast, name)
    listed = invitations.listing(cast.acme.id, timezone.now())
    assert [(each.username, each.state) for each in listed] == [(name, InvitationState.OPEN)]


@pytest.mark.parametrize(
    ("name", "days", "words"),
    [
        *((name, 7, "exactly as the person signs in") for name in ("", "   ", "two words", "a\0b")),
        *((name, 7, "exactly as the person signs in") for name in ("x" * 151, "a<b")),
        *(("newcomer", days, "1 to 30 days") for days in (0, 31, -1)),
        ("member", 7, "Change it in the list of members"),
    ],
)
def test_an_invalid_invitation_is_refused_and_changes_nothing(
    cast: Cast, name: str, days: int, words: str
) -> None:
    with pytest.raises(InvalidError, match=words):
        _invite(cast, name, Role.OWNER, days)
    assert _role(cast.member.user) == "member"
    assert not Invitation.objects.exists()
    assert _actions() == []


def test_a_tenant_has_at_most_a_hundred_open_invitations(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invitations, "MAX_OPEN", 2)
    first = _invite(cast, "one")
    _invite(cast, "two")
    with pytest.raises(InvalidError, match="Withdraw some first"):
        _invite(cast, "three")
    assert invitations.withdraw(cast.acme.id, first.id, actor=ACTOR)
    three = _invite(cast, "three")
    _expire(cast, three)
    _invite(cast, "four")


def _expire(cast: Cast, issued: IssuedInvitation) -> None:
    past = timezone.now() - timedelta(seconds=1)
    Invitation.objects.filter(pk=issued.id).update(expires_at=past)


def _replace_owner(cast: Cast, role: Role | None) -> None:
    set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)
    if role is None:
        remove_member(cast.acme.id, cast.owner.user, actor=ACTOR)
    else:
        set_member(cast.acme.id, cast.owner.user, role, actor=ACTOR)


def _give_and_take(cast: Cast, issued: IssuedInvitation) -> None:
    """Make a later decision, which overrides the invitation."""
    user = User.objects.get(username="newcomer")
    set_member(cast.acme.id, user, Role.MEMBER, actor=ACTOR)
    remove_member(cast.acme.id, user, actor=ACTOR)


SPOILT: dict[str, tuple[Callable[[Cast, IssuedInvitation], object], InvitationState]] = {
    "withdrawn": (
        lambda cast, issued: invitations.withdraw(cast.acme.id, issued.id, actor=ACTOR),
        InvitationState.WITHDRAWN,
    ),
    "expired": (_expire, InvitationState.EXPIRED),
    "overridden": (_give_and_take, InvitationState.WITHDRAWN),
    "inviter demoted": (lambda cast, _: _replace_owner(cast, Role.OPERATOR), InvitationState.VOID),
    "inviter removed": (lambda cast, _: _replace_owner(cast, None), InvitationState.VOID),
    "inviter off": (
        lambda cast, _: User.objects.filter(pk=cast.owner.user.pk).update(is_active=False),
        InvitationState.VOID,
    ),
    "inviter deleted": (lambda cast, _: cast.owner.user.delete(), InvitationState.VOID),
    "closed": (lambda cast, _: close_tenant(cast.acme.id, actor=ACTOR), InvitationState.VOID),
}


@pytest.mark.parametrize("spoilt", SPOILT)
def test_an_expired_or_invalidated_invitation_cannot_be_accepted(cast: Cast, spoilt: str) -> None:
    user, issued = _newcomer(), _invite(cast)
    spoil, state = SPOILT[spoilt]
    spoil(cast, issued)
    assert invitations.offer(issued.link, user, timezone.now()) is None
    assert not invitations.accept(issued.link, user, timezone.now())
    assert _role(user) is None
    assert _states(cast) == [state]
    if spoilt == "closed":
        with pytest.raises(UnknownTenantError):
            _invite(cast)


def test_a_second_invitation_replaces_the_first(cast: Cast) -> None:
    user, first, second = _newcomer(), _invite(cast), _invite(cast, role=Role.AUDITOR)
    assert not invitations.accept(first.link, user, timezone.now())
    assert invitations.accept(second.link, user, timezone.now())
    assert _role(user) == "auditor"
    assert _actions() == [
        "member.invited",
        "invitation.withdrawn",
        "member.invited",
        "invitation.accepted",
    ]


def test_a_used_link_changes_no_role_and_does_not_restore_a_removed_member(cast: Cast) -> None:
    user, issued = _newcomer(), _invite(cast, role=Role.OWNER)
    assert invitations.accept(issued.link, user, timezone.now())
    set_member(cast.acme.id, user, Role.MEMBER, actor=ACTOR)
    assert invitations.accept(issued.link, user, timezone.now())
    assert _role(user) == "member"
    remove_member(cast.acme.id, user, actor=ACTOR)
    assert not invitations.accept(issued.link, user, timezone.now())
    assert _role(user) is None


def test_a_used_link_works_for_no_other_member(cast: Cast) -> None:
    issued = _invite(cast)
    assert invitations.accept(issued.link, _newcomer(), timezone.now())
    for user in (cast.owner.user, cast.operator.user):
        assert not invitations.accept(issued.link, user, timezone.now())
        assert not invitations.decline(issued.link, user, timezone.now())


def test_an_invitation_can_be_accepted_only_before_it_expires(cast: Cast) -> None:
    issued, user = _invite(cast), _newcomer()
    end = issued.expires_at
    assert invitations.offer(issued.link, user, end - timedelta(seconds=1)) is not None
    assert invitations.offer(issued.link, user, end) is None
    assert not invitations.accept(issued.link, user, end)


@pytest.mark.parametrize(("name", "active"), [("newcomer", False), ("Newcomer", True)])
def test_an_inactive_account_or_one_with_a_similar_name_cannot_accept(
    cast: Cast, name: str, active: bool
) -> None:
    issued, user = _invite(cast, name), User.objects.create_user("newcomer", is_active=active)
    assert not invitations.accept(issued.link, user, timezone.now())
    assert _role(user) is None


def test_staff_may_invite_to_a_tenant_without_a_role_in_it(cast: Cast) -> None:
    user = _newcomer()
    issued = invitations.invite(
        cast.acme.id,
        "newcomer",
        Role.OWNER,
        actor=Actor.person(cast.staff.user.pk, cast.staff.user.get_username()),
    )
    assert invitations.accept(issued.link, user, timezone.now())
    assert Membership.objects.get(tenant=cast.acme.id, user=user).added_by == "staff"


def test_an_invitation_of_another_tenant_cannot_be_withdrawn(cast: Cast) -> None:
    issued = _invite(cast)
    assert not invitations.withdraw(cast.globex.id, issued.id, actor=ACTOR)
    assert invitations.withdraw(cast.acme.id, issued.id, actor=ACTOR)
    assert not invitations.withdraw(cast.acme.id, issued.id, actor=ACTOR)


@pytest.mark.django_db(transaction=True)
def test_accepting_a_link_concurrently_creates_one_membership_and_one_record(
    cast: Cast,
) -> None:
    user, issued = _newcomer(), _invite(cast)
    answers = at_once(lambda: invitations.accept(issued.link, user, timezone.now()), 20)
    assert answers == [True] * 20
    assert Membership.objects.filter(tenant=cast.acme.id, user=user).count() == 1
    assert _actions() == ["member.invited", "invitation.accepted"]


@pytest.mark.django_db(transaction=True)
def test_only_one_of_concurrent_accept_and_withdraw_takes_effect(cast: Cast) -> None:
    user, issued = _newcomer(), _invite(cast)

    verbs = iter(
        (
            lambda: ("withdrawn", invitations.withdraw(cast.acme.id, issued.id, actor=ACTOR)),
            lambda: ("accepted", invitations.accept(issued.link, user, timezone.now())),
        )
    )
    answers = dict(at_once(lambda: next(verbs)(), 2))
    assert sorted(answers.values()) == [False, True]
    assert (_role(user) is not None) is answers["accepted"]
