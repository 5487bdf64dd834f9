"""Somebody in the admin of one node, by its forms, without a browser."""

import http.client
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from html.parser import HTMLParser
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

    def post(self, path: str, **fields: str | Sequence[str]) -> None:
        """Send a form; it is accepted, which is answered with a redirection."""
        self._ask("POST", path, 302, self._form(fields))

    def submit(self, path: str, **fields: str | Sequence[str]) -> str:
        """Send a form that is answered with a page."""
        return self._ask("POST", path, 200, self._form(fields))

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

    def _form(self, fields: Mapping[str, str | Sequence[str]]) -> str:
        return urlencode({**fields, "csrfmiddlewaretoken": self._token}, doseq=True)

    @property
    def cookie(self) -> str:
        """The cookies, as a header has them."""
        return "; ".join(f"{name}={value}" for name, value in self._cookies.items())

    def _ask(self, method: str, path: str, status: int, body: str = "") -> str:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as line:
            line.request(method, path, body, {"Cookie": self.cookie, "Content-Type": FORM})
            response = line.getresponse()
            page = response.read().decode()
            assert response.status == status, f"{method} {path}: {response.status} {page[:300]}"
            for name, value in response.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self._cookies[key] = rest.partition(";")[0]
        return page


@dataclass
class _Control:
    """A field of a form. `choices` are those of a select, by what is shown."""

    name: str
    type: str
    value: str = ""
    is_sent: bool = True
    choices: dict[str, str] = field(default_factory=dict)


class Form(HTMLParser):
    """The form of a page, as a browser has it: what is in it, and what is filled in by its labels.

    Rows that a browser would only add by a script are left out, and so are files.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self._controls: dict[str, _Control] = {}
        self._labels: dict[str, str] = {}
        self._text: list[str] = []
        self._label = self._option = ""
        self._open: _Control | None = None
        self._unborn = 0
        self.feed(page)

    @property
    def fields(self) -> dict[str, str]:
        """What would be sent."""
        return {each.name: each.value for each in self._controls.values() if each.is_sent}

    def fill(self, label: str, value: str, prefix: str = "") -> None:
        """Type into a field, choose by what is shown, or tick (any value); of several fields with this
        label, the first one whose name has the prefix."""
        found = [
            self._controls[id]
            for id, text in self._labels.items()
            if text == label and id in self._controls
        ]
        fits = (each for each in found if each.name.startswith(prefix))
        control = next(fits, None)
        assert control, f"there is no field {prefix}{label!r}"
        control.is_sent = True
        if control.type == "select":
            control.value = control.choices[value]
        elif control.type != "checkbox":
            control.value = value

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        chosen = {"checked", "selected"} & {name for name, _ in attrs}
        if tag == "template":
            self._unborn += 1
        elif tag == "label":
            self._label, self._text = given.get("for", ""), []
        elif tag == "option":
            self._option, self._text = given.get("value", ""), []
            if self._open and chosen:
                self._open.value = given.get("value", "")
        elif tag in ("input", "select", "textarea") and given.get("name") and not self._unborn:
            type = given.get("type", "text") if tag == "input" else tag
            ticked = type in ("checkbox", "radio")
            value = given.get("value", "on" if ticked else "")
            is_sent = bool(chosen) if ticked else type not in ("file", "submit")
            control = _Control(given["name"], type, value, is_sent)
            self._controls.setdefault(given.get("id", given["name"]), control)
            if tag != "input":
                self._open, self._text = control, []

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._text)
        if tag == "template":
            self._unborn -= 1
        elif tag == "label" and not self._unborn:
            self._labels.setdefault(self._label, text.strip())
        elif tag == "option" and self._open:
            self._open.choices[text.strip()] = self._option
            self._text = []
        elif tag == "textarea" and self._open:
            self._open.value = text.removeprefix("\n")
            self._open = None
        elif tag == "select":
            self._open = None
