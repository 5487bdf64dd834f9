"""Somebody in the admin of one node, by its forms, without a browser."""

import http.client
import re
from contextlib import closing
from urllib.parse import urlencode

PATIENCE = 30
FORM = "application/x-www-form-urlencoded"


class Admin:
    """Signed in at `port` of 127.0.0.1, which may be changed to that of another node. Every page that
    is asked for must be there."""

    def __init__(self, port: int, password: str, user: str = "admin") -> None:
        self.port = port
        self._cookies: dict[str, str] = {}
        self._token = ""
        self.get("/admin/login/")
        self.post("/admin/login/?next=/admin/", username=user, password=password)
        self.get("/admin/")

    def get(self, path: str) -> str:
        """The page at `path`."""
        page = self._ask("GET", path, 200)
        if found := re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page):
            self._token = found[1]
        return page

    def post(self, path: str, **fields: str) -> None:
        """Send a form; it is accepted, which is answered with a redirection."""
        self._ask("POST", path, 302, urlencode({**fields, "csrfmiddlewaretoken": self._token}))

    def confirm(self, path: str) -> None:
        """Confirm what the page of a link asks: look at it, and press its button."""
        assert "Confirm this request?" in self.get(path)
        self._ask("POST", path, 200, urlencode({"csrfmiddlewaretoken": self._token}))

    def press(self, tenant: str, kind: str, name: str, verb: str) -> None:
        """Press a button of the one of that name: publish, disable, enable, announce.

        `kind` is the page that lists it: tools, prompts, resources.
        """
        listing = f"/admin/t/{tenant}/{kind}/"
        link = rf'href="({listing}[0-9a-f-]{{36}}/)"[^>]*>\s*(?:<b>)?{name}<'
        found = re.search(link, self.get(listing))
        assert found, f"{name} is not among the {kind}"
        self.post(f"{found[1]}{verb}/")

    def _ask(self, method: str, path: str, status: int, body: str = "") -> str:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as line:
            line.request(method, path, body, {"Cookie": cookies, "Content-Type": FORM})
            response = line.getresponse()
            page = response.read().decode()
            assert response.status == status, f"{method} {path}: {response.status} {page[:300]}"
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self._cookies[key] = rest.partition(";")[0]
        return page
