"""Concurrent changes by users of a running server. Single changes are tested in `tests/tenants` and `tests/console`."""

import re
from concurrent.futures import ThreadPoolExecutor

from tests.attacks.test_signin import CHOSEN, Visitor, account, administrator, visitor
from tests.e2e.processes import Server


def number(staff: Visitor, name: str) -> str:
    found = re.search(r'id="user-(\d+)"', staff.get(f"/admin/users/?q={name}").text)
    assert found
    return found[1]


def test_one_of_two_staff_users_who_remove_each_other_at_once_keeps_access(
    postgresql_server: Server,
) -> None:
    server = postgresql_server
    staff = administrator(server)
    for _ in range(3):
        names = [account(server, staff) for _ in range(2)]
        browsers = [visitor(server) for _ in names]
        for name, browser in zip(names, browsers, strict=True):
            assert browser.sign_in(name, CHOSEN).status == 302
            browser.get("/admin/users/")
        paths = [f"/admin/users/{number(staff, name)}/" for name in names]
        with ThreadPoolExecutor(2) as pool:
            takes = [
                pool.submit(who.post, path, is_active="on", confirmed="on")
                for who, path in zip(browsers, reversed(paths), strict=True)
            ]
        assert {take.result().status for take in takes} <= {302, 403}
        kept = [browser for browser in browsers if browser.get("/admin/users/").status == 200]
        assert len(kept) == 1
