import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.console.users import changes
from mcphost.console.users.changes import PersonFields
from mcphost.feed.models import Change
from mcphost.identity.services import TokenRequest, issue
from mcphost.tenants.errors import InvalidError
from mcphost.tenants.roles import CALL_TOOLS, Role
from mcphost.tenants.services import set_member
from tests.cast import PASSWORD, Cast
from tests.console.concurrent_changes import before_the_change
from tests.console.conftest import Browser
from tests.console.tenant_data import ACTOR
from tests.vault.parallel_threads import at_once

LONG = "correct-horse-battery"
NEW = "/admin/users/new/"


def path_of(user: User) -> str:
    return f"/admin/users/{user.pk}/"


pytestmark = pytest.mark.django_db


def test_staff_create_a_user_without_staff_access_and_without_a_password(staff: Client) -> None:
    fields = {"username": "olga", "password": LONG, "is_active": "on", "email": "o@x.example"}
    page = staff.post(NEW, fields)
    assert "/admin/account-links/mcph_account_" in page.content.decode()
    user = User.objects.get(username="olga")
    assert not user.has_usable_password()
    assert (user.email, user.is_staff, user.is_superuser) == ("o@x.example", False, False)
    made = Entry.objects.get(action="user.created")
    assert (made.actor_label, made.facts["user"]) == ("staff", "olga")
    assert LONG not in str(made.facts)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"username": "OWNER"}, "username"),
        ({"username": "no blanks"}, "username"),
        ({"email": "nonsense"}, "email"),
    ],
)
def test_invalid_fields_of_a_user_are_reported(staff, cast, wrong, field):
    before = User.objects.count()
    response = staff.post(NEW, {"username": "olga", "password": LONG, **wrong})
    assert list(response.context["form"].errors) == [field]
    assert User.objects.count() == before


def test_deactivating_a_user_announces_a_change_for_the_users_tokens(
    staff: Client, cast: Cast
) -> None:
    path = path_of(cast.operator.user)
    before = Change.objects.count()
    confirmation = staff.post(path, {"first_name": "Olga"})
    assert confirmation.context["title"] == "Deactivate the user “operator”"
    assert User.objects.get(username="operator").is_active
    assert staff.post(path, dict(confirmation.context["repeated"]))["Location"] == path
    user = User.objects.get(username="operator")
    assert (user.first_name, user.is_active) == ("Olga", False)
    assert Change.objects.count() == before + 1
    facts = Entry.objects.get(action="user.updated").facts
    assert facts == {"changed": ["first_name", "is_active"], "is_active": False, "user": "operator"}


def test_a_user_becomes_platform_staff_and_loses_it_again_after_confirmation(
    staff: Client, cast: Cast
) -> None:
    path, both = path_of(cast.operator.user), {"is_active": "on", "is_staff": "on"}
    for fields, title, sentence in (
        (both, "Make “operator” platform staff", "take this right from you"),
        ({"is_active": "on"}, "Remove “operator” from platform staff", "no pages of the platform"),
    ):
        before = User.objects.get(username="operator").is_staff
        asked = staff.post(path, fields)
        assert asked.context["title"] == title
        assert sentence in asked.content.decode()
        assert User.objects.get(username="operator").is_staff is before
        assert staff.post(path, dict(asked.context["repeated"]))["Location"] == path
        assert User.objects.get(username="operator").is_staff is not before
    changes.update(cast.operator.user, PersonFields(is_staff=True), ACTOR)
    asked = staff.post(path, {})
    assert asked.context["title"] == "Change the access of “operator”"
    assert all(text in asked.content.decode() for text in ("signed out within", "staff tokens"))


def test_a_new_user_is_platform_staff_after_confirmation(staff: Client) -> None:
    asked = staff.post(NEW, {"username": "olga", "is_active": "on", "is_staff": "on"})
    assert asked.context["title"] == "Create “olga” as platform staff"
    assert not User.objects.filter(username="olga").exists()
    staff.post(NEW, dict(asked.context["repeated"]))
    assert User.objects.get(username="olga").is_staff


def test_the_last_owner_of_a_tenant_cannot_be_deactivated(staff: Client, cast: Cast) -> None:
    path = path_of(cast.owner.user)
    fields = {"first_name": "Olga", "confirmed": "on"}
    shown = staff.post(path, {"first_name": "Olga"}).content.decode()
    assert "<h1>The user “owner” cannot be deactivated yet</h1>" in shown
    members = '<a href="/admin/t/acme/members/">the members of Acme</a>'
    alone = "owner is the last owner. First make another of {} an owner, or invite one.</p>"
    assert alone.format(members) in shown
    assert "c-danger" not in shown
    set_member(cast.globex.id, cast.owner.user, Role.OWNER, actor=ACTOR)
    set_member(cast.globex.id, cast.stranger.user, Role.MEMBER, actor=ACTOR)
    several = staff.post(path, {"first_name": "Olga"}).content.decode()
    assert "In each, first make another member an owner, or invite one:</p>" in several
    assert f"<li>{members}</li>" in several
    assert '<li><a href="/admin/t/globex/members/">the members of Globex</a></li>' in several
    set_member(cast.globex.id, cast.stranger.user, Role.OWNER, actor=ACTOR)
    response = staff.post(path, fields)
    (problem,) = response.context["form"].errors["is_active"]
    assert problem == "owner is the last owner of acme. Make another member owner there first."
    assert User.objects.get(username="owner").is_active
    assert not Entry.objects.filter(action="user.updated").exists()
    set_member(cast.acme.id, cast.operator.user, Role.OWNER, actor=ACTOR)
    assert staff.post(path, fields)["Location"] == path
    assert not User.objects.get(username="owner").is_active


def test_staff_see_what_acts_as_a_user_and_are_led_to_it(staff: Client, cast: Cast) -> None:
    newcomer = User.objects.create_user("newcomer")
    assert "None that works" in staff.get(path_of(newcomer)).content.decode()
    path = path_of(cast.operator.user)
    request = TokenRequest("laptop", (CALL_TOOLS,))
    token = issue(cast.acme.id, cast.operator.user, request, actor=ACTOR)
    page = staff.get(path).content.decode()
    assert f'href="/admin/t/acme/tokens/?at={token.id}#token-{token.id}"' in page
    assert "<li>3 live tokens will stop working.</li>" in staff.post(path, {}).content.decode()
    idle = staff.post(path_of(newcomer), {}).content.decode()
    assert "will be signed out" in idle
    assert "will stop working" not in idle


def test_an_older_page_does_not_restore_access_removed_in_the_meantime(staff: Client, cast: Cast):
    path = path_of(cast.operator.user)
    changes.update(cast.operator.user, PersonFields(is_staff=True), ACTOR)
    page = staff.get(path)
    based_on = page.context["based_on"]
    assert f'name="based_on" value="{based_on}"' in page.content.decode()
    changes.update(cast.operator.user, PersonFields(is_active=False), ACTOR)
    before = Entry.objects.count()
    fields = {"email": "o@x.example", "is_active": "on", "is_staff": "on"}
    refused = staff.post(path, {**fields, "based_on": based_on})
    assert "operator was changed meanwhile by another user" in refused.content.decode()
    assert [(each.label, each.before, each.after) for each in refused.context["conflict"]] == [
        ("E-mail", "", "o@x.example"),
        ("Active", False, True),
        ("Platform staff", False, True),
    ]
    assert 'id="conflict"' in refused.content.decode()
    user = User.objects.get(username="operator")
    assert (user.email, user.is_active, user.is_staff) == ("", False, False)
    assert Entry.objects.count() == before
    seen = {"email": "o@x.example", "based_on": refused.context["based_on"]}
    assert staff.post(path, seen)["Location"] == path
    user = User.objects.get(username="operator")
    assert (user.email, user.is_active) == ("o@x.example", False)


def test_submitting_a_user_twice_or_unchanged_is_no_conflict(staff, cast):
    path, updated = path_of(cast.operator.user), Entry.objects.filter(action="user.updated")
    staff.post(path, {"is_active": "on"})
    assert not updated.exists()
    based_on = staff.get(path).context["based_on"]
    for _ in range(2):
        fields = {"is_active": "on", "first_name": "Olga", "based_on": based_on}
        assert staff.post(path, fields)["Location"] == path
    assert updated.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_changes_of_a_user_is_refused(cast: Cast, browse: Browser) -> None:
    path = path_of(cast.operator.user)
    clients = [browse(cast.staff), browse(cast.staff)]
    based_on = clients[0].get(path).context["based_on"]
    waiting = iter(clients)
    sent = {"is_active": "on", "based_on": based_on}

    def save() -> int:
        client = next(waiting)
        return client.post(path, {**sent, "first_name": str(clients.index(client))}).status_code

    assert sorted(at_once(save, 2)) == [200, 302]
    assert Entry.objects.filter(action="user.updated").count() == 1


@pytest.mark.parametrize("part", ["", "password/"])
def test_a_user_deleted_in_the_meantime_is_not_found(staff: Client, cast: Cast, part: str) -> None:
    gone = User.objects.create_user("newcomer")
    with before_the_change(lambda: User.objects.filter(pk=gone.pk).delete()):
        response = staff.post(
            path_of(gone) + part, {"first_name": "Nova", "lock_out": "on", "confirmed": "on"}
        )
    assert response.status_code == 404
    assert not Entry.objects.filter(action__startswith="user.").exists()


@pytest.mark.parametrize("taken", ["is_staff", "is_active"])
@pytest.mark.parametrize("part", ["", "password/"])
def test_staff_who_lost_access_in_the_meantime_cannot_change_users_or_passwords(
    staff, cast, taken, part
):
    itself = User.objects.filter(pk=cast.staff.user.pk)
    fields = {"first_name": "Olga", "is_active": "on", "lock_out": "on"}
    with before_the_change(lambda: itself.update(**{taken: False})):
        assert staff.post(path_of(cast.operator.user) + part, fields).status_code == 403
    user = User.objects.get(username="operator")
    assert user.first_name == ""
    assert user.check_password(PASSWORD)


def test_staff_cannot_remove_their_own_access(staff: Client, cast: Cast) -> None:
    response = staff.post(path_of(cast.staff.user), {})
    assert set(response.context["form"].errors) == {"is_active", "is_staff"}
    assert User.objects.get(username="staff").is_staff


def test_a_user_changes_the_own_password_and_stays_signed_in(owner: Client) -> None:
    path = "/admin/password/"
    for fields, wrong in (
        ({"present": "no", "password": LONG, "again": LONG}, ["present"]),
        ({"present": PASSWORD, "password": LONG, "again": "x"}, ["again"]),
        ({"present": PASSWORD, "password": "owner", "again": "owner"}, ["password", "again"]),
    ):
        assert list(owner.post(path, fields).context["form"].errors) == wrong
    right = {"present": PASSWORD, "password": LONG, "again": LONG}
    assert owner.post(path, right)["Location"] == "/admin/you/"
    assert "Your password was changed." in owner.get("/admin/").content.decode()


def test_an_older_session_does_not_replace_a_password_set_in_the_meantime(cast, browse):
    intruder = browse(cast.staff)
    users = User.objects.filter(pk=cast.staff.user.pk)
    fields = {"present": PASSWORD, "password": "of-the-intruder", "again": "of-the-intruder"}
    # While the current password is hashed, another staff member sets a new one.
    with before_the_change(lambda: users.update(password=make_password(LONG))):
        refused = intruder.post("/admin/password/", fields)
    assert "Your password was changed meanwhile." in refused.content.decode()
    assert users.get().check_password(LONG)
    assert intruder.get("/admin/you/").status_code == 302
    assert not Entry.objects.filter(action="user.password_set").exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_changes_of_the_own_password_is_refused(cast: Cast) -> None:
    before = User.objects.get(username="owner")
    given = iter(("the-first-of-two", "the-second-of-two"))

    def change() -> str:
        password = next(given)
        try:
            changes.set_password(before, password, ACTOR, checked=before.password)
        except InvalidError:
            return ""
        return password

    refused, done = sorted(at_once(change, 2))
    assert not refused
    assert User.objects.get(username="owner").check_password(done)
