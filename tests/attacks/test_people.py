"""What it comes to when people try to become, or to act as, somebody else in a tenant of a running server.

Each test makes accounts and tenants of its own.
"""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count

import pytest

from tests.attacks.test_signin import CHOSEN, Visitor, administrator, visitor
from tests.e2e.processes import Server

SIGN_IN = "/admin/sign-in/"
YOU = "/admin/you/"
UNKNOWN = f"/admin/invitations/mcph_invitation_{'x' * 43}/"
LINK = re.compile(r"/admin/invitations/mcph_invitation_[\w-]{43}/")
CHANGING = re.compile(
    r'mcph_invitation_[\w-]{43}|[0-9a-f-]{36}|value="\w{64}"|datetime="[^"]+"|title="[^"]+UTC"'
)

_numbers = count(1)


@dataclass(frozen=True)
class Stage:
    """A server, its administrator signed in, and a tenant with one owner."""

    server: Server
    staff: Visitor
    slug: str
    owner: Visitor
    owner_name: str

    @property
    def members(self) -> str:
        return f"/admin/t/{self.slug}/members/"

    def account(self, **switches: str) -> str:
        """The name of a new account without a role."""
        name = f"person-{next(_numbers)}"
        fields = {"username": name, "password": CHOSEN, "is_active": "on", **switches}
        assert self.staff.post("/admin/users/new/", **fields).status == 302
        return name

    def enter(self, name: str) -> Visitor:
        """A browser in which an account is signed in, with whatever role."""
        came = visitor(self.server)
        came.get(SIGN_IN)
        assert came.post(SIGN_IN, username=name, password=CHOSEN).status == 302
        came.get(YOU)
        return came

    def invite(self, name: str, role: str, by: Visitor | None = None) -> str:
        """The path of the link of an invitation."""
        inviter = by or self.owner
        page = inviter.post(self.members, username=name, role=role, days="7")
        (link,) = set(LINK.findall(page.text))
        return link

    def join(self, role: str) -> tuple[str, Visitor]:
        """A new account that accepted an invitation, and its browser."""
        name = self.account()
        came = self.enter(name)
        assert came.post(self.invite(name, role), _accept="1").status == 302
        return name, came

    def user(self, name: str) -> str:
        """The number of an account, as the members' page has it."""
        page = self.owner.get(self.members).text
        row = page[page.index(f"<b>{name}</b>") :]
        found = re.search(r"members/(\d+)/", row)
        assert found
        return found[1]

    def number(self, name: str) -> str:
        """The number of any account, as the page of users has it."""
        found = re.search(r'id="user-(\d+)"', self.staff.get(f"/admin/users/?q={name}").text)
        assert found
        return found[1]

    def roles(self) -> dict[str, str]:
        """Who has which role, as staff see it."""
        page = self.staff.get(self.members).text.partition("<h2>Invitations</h2>")[0]
        rows = re.findall(
            r"<td><b>([^<]+)</b>.*?<option value=\"(\w+)\" selected>", page, re.DOTALL
        )
        return dict(rows)

    def changes(self) -> str:
        return self.staff.get(f"/admin/t/{self.slug}/audit-log/").text


@pytest.fixture
def stage(attacked: Server) -> Stage:
    return made_stage(attacked, administrator(attacked))


def made_stage(server: Server, staff: Visitor) -> Stage:
    """A new tenant whose first owner staff appointed."""
    slug = f"tenant-{next(_numbers)}"
    staff.get("/admin/tenants/new/")
    assert staff.post("/admin/tenants/new/", slug=slug, title=slug).status == 302
    draft = Stage(server, staff, slug, staff, "")
    name = draft.account()
    assert staff.post(draft.members, username=name).status == 302
    return Stage(server, staff, slug, draft.enter(name), name)


def test_only_the_invited_account_can_accept(stage: Stage) -> None:
    invited, other = stage.account(), stage.account()
    link, stranger = stage.invite(invited, "operator"), stage.enter(other)
    for fields in ({"_accept": "1"}, {"_decline": "1"}, {}):
        real, unknown = stranger.post(link, **fields), stranger.post(UNKNOWN, **fields)
        assert (real.status, real.text) == (unknown.status, unknown.text) == (404, unknown.text)
    assert stranger.get(link).text == stranger.get(UNKNOWN).text
    assert set(stage.roles()) == {stage.owner_name}
    assert stage.enter(invited).post(link, _accept="1").status == 302
    assert stage.roles()[invited] == "operator"


def test_without_a_sign_in_real_and_made_up_links_are_answered_alike(stage: Stage) -> None:
    link, nobody = stage.invite(stage.account(), "member"), visitor(stage.server)
    for path in (link, UNKNOWN):
        for page in (nobody.get(path), nobody.post(path, _accept="1")):
            assert page.status == 302
            assert page.headers["location"] == f"{SIGN_IN}?next={path}"
            assert page.text == ""


def test_a_link_works_once(stage: Stage) -> None:
    name = stage.account()
    link, came = stage.invite(name, "member"), stage.enter(name)
    assert came.post(link, _accept="1").status == 302
    came.get(YOU)
    assert came.post(f"{YOU}t/{stage.slug}/leave/").status == 302
    assert came.get(link).status == 404
    assert came.post(link, _accept="1").status == 404
    assert name not in stage.roles()


def test_a_link_that_is_accepted_twenty_times_at_once_makes_one_member_and_one_entry(
    stage: Stage,
) -> None:
    name = stage.account()
    link, came = stage.invite(name, "member"), stage.enter(name)
    with ThreadPoolExecutor(20) as pool:
        pages = list(pool.map(lambda _: came.post(link, _accept="1"), range(20)))
    assert {page.status for page in pages} == {302}
    assert stage.changes().count('title="invitation.accepted"') == 1
    assert stage.staff.get(stage.members).text.count(f"<b>{name}</b>") == 2


def test_a_withdrawn_link_and_that_of_a_former_owner_are_worthless(stage: Stage) -> None:
    second, other_owner = stage.join("owner")
    name = stage.account()
    came, link = stage.enter(name), stage.invite(name, "owner", by=other_owner)
    user = stage.user(second)
    assert stage.owner.post(f"{stage.members}{user}/role/", role="member").status == 302
    assert came.get(link).status == 404
    assert came.post(link, _accept="1").status == 404
    assert other_owner.post(stage.members, username=name, role="owner", days="7").status == 302
    link = stage.invite(name, "owner")
    page = stage.owner.get(stage.members).text
    withdraw = re.findall(rf"{stage.members}invitations/[0-9a-f-]+/withdraw/", page)
    assert stage.owner.post(withdraw[0]).status == 302
    assert came.post(link, _accept="1").status == 404
    assert name not in stage.roles()


@pytest.mark.parametrize("role", ["operator", "auditor", "member"])
def test_who_is_no_owner_invites_appoints_and_promotes_nobody(stage: Stage, role: str) -> None:
    name, came = stage.join(role)
    accomplice = stage.account()
    user = stage.user(name)
    attempts = (
        (stage.members, {"username": accomplice, "role": "owner", "days": "7"}),
        (f"{stage.members}{user}/role/", {"role": "owner"}),
        (f"{stage.members}{user}/scopes/", {"scopes": "mcp:secret"}),
        (f"/admin/t/{stage.slug}/service-accounts/", {"name": "mine"}),
        (f"/admin/t/{stage.slug}/tokens/new/", {"name": "mine", "owner": user}),
    )
    for path, fields in attempts:
        assert came.post(path, **fields).status in (302, 403), path
    assert stage.roles()[name] == role
    assert accomplice not in stage.staff.get(stage.members).text
    assert "service_account.created" not in stage.changes()


def test_an_owner_of_another_tenant_has_no_say_here(stage: Stage) -> None:
    theirs = made_stage(stage.server, stage.staff)
    name = stage.account()
    stage.invite(name, "member")
    page = stage.owner.get(stage.members).text
    (withdraw,) = re.findall(rf"{stage.members}invitations/[0-9a-f-]+/withdraw/", page)
    foreign = withdraw.replace(stage.slug, theirs.slug)
    stage_user = stage.user(stage.owner_name)
    for path, status in (
        (withdraw, 403),
        (stage.members, 403),
        (f"{stage.members}{stage_user}/role/", 403),
        (f"{theirs.members}{stage_user}/remove/", 404),
        (f"{YOU}t/{stage.slug}/tokens/new/", 404),
        (f"{YOU}t/{stage.slug}/leave/", 404),
    ):
        assert theirs.owner.post(path, username=name, role="owner").status == status, path
    assert theirs.owner.post(foreign).status == 302
    assert "invitation.withdrawn" not in stage.changes()


def test_an_owner_learns_of_no_account_by_inviting(stage: Stage) -> None:
    """The pages for a name with an account, without one, and with one that is off differ by nothing."""
    existing, inactive, unknown = stage.account(), stage.account(is_active=""), "person-never"

    def pages(name: str) -> tuple[str, str]:
        made = stage.owner.post(stage.members, username=name, role="member", days="7")
        listed = stage.owner.get(stage.members)
        assert (made.status, listed.status) == (200, 200)
        end = re.findall(rf"{stage.members}invitations/[0-9a-f-]+/withdraw/", listed.text)
        assert stage.owner.post(end[0]).status == 302
        stage.owner.get(stage.members)  # says so, once
        listed_row = listed.text[listed.text.index("<h2>Invitations</h2>") :].partition("</tr>")[2]
        return _plain(made.text, name), _plain(listed_row.partition("</tr>")[0], name)

    assert pages(existing) == pages(unknown) == pages(inactive)


def _plain(text: str, name: str) -> str:
    """What does not change from one page to the next of its kind."""
    return CHANGING.sub("…", text).replace(name, "…")


def test_no_owner_issues_a_token_for_another_member(stage: Stage) -> None:
    name, _ = stage.join("operator")
    path = f"/admin/t/{stage.slug}/tokens/new/"
    fields = {"name": "theirs", "audience": "mcp", "scopes": "mcp:call", "expires_at": ""}
    page = stage.owner.post(path, owner=stage.user(name), **fields)
    assert "issue tokens only for themselves" in page.text
    assert "mcph_" not in page.text
    own = stage.owner.post(f"{YOU}t/{stage.slug}/tokens/new/", owner=stage.user(name), **fields)
    assert "mcph_" in own.text
    listed = stage.owner.get(f"/admin/t/{stage.slug}/tokens/").text
    assert f"<td>{name}</td>" not in listed
    assert f"<td>{stage.owner_name}</td>" in listed


def test_twenty_tokens_and_changed_roles_at_once_all_come_about(stage: Stage) -> None:
    _, came = stage.join("member")
    path, (other, _) = f"{YOU}t/{stage.slug}/tokens/new/", stage.join("member")
    change = f"{stage.members}{stage.user(other)}/role/"
    fields = {"name": "one of many", "audience": "mcp", "scopes": "mcp:list", "expires_at": ""}
    with ThreadPoolExecutor(20) as pool:
        issued = [pool.submit(came.post, path, **fields) for _ in range(10)]
        changed = [
            pool.submit(stage.owner.post, change, role=("operator", "member")[number % 2])
            for number in range(10)
        ]
    assert {each.result().status for each in changed} == {302}
    assert all("mcph_" in each.result().text for each in issued)


def test_a_member_cannot_issue_any_number_of_tokens(stage: Stage) -> None:
    _, came = stage.join("member")
    path = f"{YOU}t/{stage.slug}/tokens/new/"
    fields = {"name": "one of many", "audience": "mcp", "scopes": "mcp:list", "expires_at": ""}
    with ThreadPoolExecutor(8) as pool:
        pages = list(pool.map(lambda _: came.post(path, **fields), range(110)))
    assert sum("mcph_" in page.text for page in pages) == 100


def test_two_owners_who_demote_each_other_at_once_leave_one(stage: Stage) -> None:
    for again in (stage, made_stage(stage.server, stage.staff)):
        name, came = again.join("owner")
        pairs = ((again.owner, again.user(name)), (came, again.user(again.owner_name)))
        with ThreadPoolExecutor(2) as pool:
            orders = [
                pool.submit(who.post, f"{again.members}{user}/role/", role="member")
                for who, user in pairs
            ]
        assert {order.result().status for order in orders} <= {302, 403}
        assert sorted(again.roles().values()) == ["member", "owner"]


def test_two_staff_who_take_each_others_access_at_once_leave_one(stage: Stage) -> None:
    for _ in range(5):
        names = [stage.account(is_staff="on") for _ in range(2)]
        browsers = [stage.enter(name) for name in names]
        paths = [f"/admin/users/{stage.number(name)}/" for name in names]
        with ThreadPoolExecutor(2) as pool:
            takes = [
                pool.submit(who.post, path, is_active="on")
                for who, path in zip(browsers, reversed(paths), strict=True)
            ]
        assert {take.result().status for take in takes} <= {302, 403}
        kept = [browser for browser in browsers if browser.get("/admin/users/").status == 200]
        assert len(kept) == 1


def test_staff_put_themselves_over_no_owner_without_an_invitation_that_is_recorded(
    stage: Stage,
) -> None:
    page = stage.staff.post(stage.members, username="admin")
    assert page.status == 200
    assert "admin" not in stage.roles()
    user = stage.user(stage.owner_name)
    for verb in ("role", "remove"):
        stage.staff.post(f"{stage.members}{user}/{verb}/", role="member")
    assert stage.roles() == {stage.owner_name: "owner"}
    stage.staff.get(f"/admin/users/{user}/")
    off = stage.staff.post(f"/admin/users/{user}/", first_name="x")
    assert "is the last owner of" in off.text
