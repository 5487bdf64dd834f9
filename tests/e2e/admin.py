"""Somebody in the admin of one node, by its forms, without a browser."""

import http.client
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from urllib.parse import urlencode, urlsplit

PATIENCE = 30
FORM = "application/x-www-form-urlencoded"


class Admin:
    """Signed in at `port` of 127.0.0.1, which may be changed to that of another node.

    `location` is where the last response redirects to.
    """

    def __init__(self, port: int, password: str, user: str = "admin") -> None:
        self.port = port
        self._cookies: dict[str, str] = {}
        self._token = ""
        self.location = ""
        self.get("/admin/login/")
        self.post("/admin/login/?next=/admin/", username=user, password=password)
        self.get("/admin/")

    def get(self, path: str) -> str:
        page = self._ask("GET", path, 200)
        if found := re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page):
            self._token = found[1]
        return page

    def post(self, path: str, **fields: str | Sequence[str]) -> None:
        self._ask("POST", path, 302, self._form(fields))

    def allow(self, url: str) -> str:
        """Allow the client that opens an authorization URL; return the page that asks for consent.

        `location` is then where the browser goes.
        """
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}"
        page = self.get(path)
        membership = re.search(r'name="tenant" value="([^"]+)"', page)
        assert membership, page
        self.post(path, _allow="1", tenant=membership[1])
        return page

    def confirm(self, path: str) -> None:
        assert "<h1>Confirm “" in self.get(path)
        self._ask("POST", path, 200, urlencode({"csrfmiddlewaretoken": self._token}))

    def press(self, tenant: str, kind: str, name: str, verb: str) -> None:
        listing = f"/admin/t/{tenant}/{kind}/"
        link = rf'href="({listing}[0-9a-f-]{{36}}/)"[^>]*>\s*(?:<b>)?{name}<'
        found = re.search(link, self.get(listing))
        assert found, f"{name} is not among the {kind}"
        self.post(f"{found[1]}{verb}/")

    def _form(self, fields: Mapping[str, str | Sequence[str]]) -> str:
        return urlencode({**fields, "csrfmiddlewaretoken": self._token}, doseq=True)

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    def _ask(self, method: str, path: str, status: int, body: str = "") -> str:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as line:
            headers = {"Cookie": self.cookie, "Content-Type": FORM, "Accept": "text/html"}
            line.request(method, path, body, headers)
            response = line.getresponse()
            page = response.read().decode()
            assert response.status == status, f"{method} {path}: {response.status} {page[:300]}"
            self.location = response.getheader("Location") or ""
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self._cookies[key] = rest.partition(";")[0]
        return page
