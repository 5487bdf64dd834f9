"""What people of a tenant do at once, on a running server. One by one it is tested in `tests/tenants` and `tests/console`.

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
LINK = re.compile(r"/admin/invitations/mcph_invitation_[\w-]{43}/")

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

    def invite(self, name: str, role: str) -> str:
        """The path of the link of an invitation."""
        page = self.owner.post(self.members, username=name, role=role, days="7")
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
