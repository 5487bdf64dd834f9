"""Password guesses at the sign-in of a running server.

One guess after the other is tested in `tests/console/test_signin.py`. Each test attacks accounts of its own from
loopback addresses of its own, so that none of them slows another down.
"""

import http.client
import re
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from typing import NamedTuple
from urllib.parse import urlencode

from tests.e2e.processes import Server

PATIENCE = 60
MOST_TRIES = 200
LOGIN = "/admin/login/?next=/admin/"
FORM = "application/x-www-form-urlencoded"
WRONG = "The user name or the password is wrong."
AT_AN_ADDRESS = 8
BEFORE_PAUSES = 16

CHOSEN = "correct-horse-battery"

_numbers = count(1)
_addresses = (f"127.9.{number // 250}.{number % 250 + 1}" for number in count())


class Page(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class Visitor:
    """A browser without scripts, at one loopback address."""

    def __init__(self, server: Server, address: str) -> None:
        self._server = server
        self._address = address
        self._cookies: dict[str, str] = {}
        self._token = ""

    def get(self, path: str) -> Page:
        page = self._ask("GET", path, "")
        if found := re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page.text):
            self._token = found[1]
        return page

    def post(self, path: str, **fields: str) -> Page:
        for _ in range(MOST_TRIES):
            page = self._ask(
                "POST", path, urlencode({**fields, "csrfmiddlewaretoken": self._token})
            )
            if page.status != 503:
                return page
            time.sleep(0.1)  # between looks at another process; nothing it does could wake us
        raise AssertionError("the server stays busy")

    def sign_in(self, name: str, password: str) -> Page:
        if not self._token:
            self.get(LOGIN)
        return self.post(LOGIN, username=name, password=password)

    def _ask(self, method: str, path: str, body: str) -> Page:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        line = http.client.HTTPConnection(
            "127.0.0.1", self._server.port, timeout=PATIENCE, source_address=(self._address, 0)
        )
        with closing(line):
            line.request(method, path, body, {"Cookie": cookies, "Content-Type": FORM})
            response = line.getresponse()
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self._cookies[key] = rest.partition(";")[0]
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Page(response.status, headers, response.read().decode())


def visitor(server: Server, address: str = "") -> Visitor:
    """A visitor who has seen the sign-in page, at an address that has never been used."""
    came = Visitor(server, address or next(_addresses))
    came.get(LOGIN)
    return came


def guess(visitors: list[Visitor], name: str, times: int) -> Counter[int]:
    """Guess in parallel, the visitors in turn; how often which status was the answer."""
    with ThreadPoolExecutor(20) as pool:
        turns = (visitors[number % len(visitors)] for number in range(times))
        pages = list(pool.map(lambda each: each.sign_in(name, "a guess"), turns))
    assert all((WRONG in page.text) is (page.status == 200) for page in pages)
    return Counter(page.status for page in pages)


def administrator(server: Server) -> Visitor:
    came = visitor(server)
    password = (server.home / "admin-password").read_text().strip()
    assert came.sign_in("admin", password).status == 302
    return came


def account(server: Server, by: Visitor | None = None) -> str:
    staff, name = by or administrator(server), f"victim-{next(_numbers)}"
    staff.get("/admin/users/new/")
    switches = {"is_active": "on", "is_staff": "on", "confirmed": "on"}
    made = staff.post("/admin/users/new/", username=name, **switches)
    path = re.search(r"/admin/account-links/[\w-]+/", made.text)
    assert path is not None
    person = visitor(server)
    person.get(path[0])
    assert person.post(path[0], password=CHOSEN, again=CHOSEN).status == 302
    return name


def test_eight_of_forty_parallel_password_guesses_for_a_name_are_checked(attacked: Server) -> None:
    assert guess([visitor(attacked)], account(attacked), 40) == {200: AT_AN_ADDRESS, 429: 32}


def test_password_guesses_from_many_addresses_are_delayed_and_lock_out_no_owner(
    sqlite_server: Server,
) -> None:
    name = account(sqlite_server)
    many = [visitor(sqlite_server) for _ in range(BEFORE_PAUSES)]
    assert guess(many, name, BEFORE_PAUSES) == {200: BEFORE_PAUSES}
    # Of several guesses at once the first may come after its pause; those beside it cannot.
    assert guess(many[:1], name, 4)[429] >= 2
    assert visitor(sqlite_server).sign_in(name, CHOSEN).status == 302


def test_all_processes_count_password_guesses_together(two_limited: tuple[Server, Server]) -> None:
    address = next(_addresses)
    both = [visitor(server, address) for server in two_limited]
    assert guess(both, "auditor", 24) == {200: AT_AN_ADDRESS, 429: 16}


def test_the_auditor_and_the_administrator_of_the_demo_have_different_passwords(
    sqlite_server: Server,
) -> None:
    admin, auditor = (
        (sqlite_server.home / f"{name}-password").read_text().strip()
        for name in ("admin", "auditor")
    )
    assert auditor in sqlite_server.output.read_text()
    assert visitor(sqlite_server).sign_in("auditor", auditor).status == 302
    assert visitor(sqlite_server).sign_in("auditor", admin).status == 200
