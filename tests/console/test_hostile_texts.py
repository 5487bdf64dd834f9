"""Tests with a hostile text in every field that comes from outside, on every page, as every role.

The models are walked: a text column that is added is covered, unless it is named below as ours.
"""

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from typing import Any, Final

import pytest
from django.apps import apps
from django.db import models
from django.test import Client
from django.urls import URLPattern

from mcphost.audit.models import Payload
from mcphost.tenants.roles import Permission
from tests.audit.recorded_calls import Story
from tests.console.tenant_data import Things, said
from tests.console.url_walk import (
    ONE_OF_EACH_GUARD,
    PATTERNS,
    address,
    body,
    busy,
    permission_of,
)

pytestmark = pytest.mark.django_db

UNSEEN: Final = "\u202e\u200b\x07"
HOSTILE: Final = (
    f"\"'><script src=/x></script><img src=x onerror=x>{UNSEEN}{{{{ 7 }}}}{{% x %}}`</textarea>"
)
"""It ends attributes, elements and template tags, and holds characters that are not seen."""
SHOWN: Final = "⟨U+202E⟩⟨U+200B⟩⟨U+0007⟩"
OURS: Final = {
    "User": {"password"},
    "Permission": {"name", "codename"},
    "Entry": {"action", "actor_kind", "era", "delivery", "method"},
    "Change": {"name"},
    "Tenant": {"slug"},  # letters, digits and hyphens: checked where it is made, used in URLs
    "Membership": {"role"},
    "Invitation": {"role", "outcome"},
    "RingKey": {"id", "state", "wrapped"},
    "TenantSecret": {"wrapped_salt", "wrapped_payload_key", "payload_key_id"},
    "Payload": {"key_id"},
    "StoredSecret": {"places"},
    "Task": {"state", "era", "nonce"},
    "TaskQuestion": {"state", "nonce", "digest", "method"},
    "Token": {"id", "audience"},
    "Primitive": {"primitive_type", "kind", "state"},
    "PrimitiveVersion": {"digest", "snapshot"},  # checked when published; the code trusts its form
}
"""Columns of states, kinds, ids and digests, which the code writes and no caller chooses."""
VOID: Final = frozenset(
    "area base br col embed hr img input link meta source track wbr".split()  # noqa: SIM905
)


def _columns() -> Iterator[tuple[type[models.Model], Any]]:
    text = (models.CharField, models.TextField, models.JSONField)
    for model in apps.get_models():
        if model.__module__.startswith(("mcphost", "django.contrib.auth")):
            ours = OURS.get(model.__name__, set())
            fields = [each for each in model._meta.concrete_fields if isinstance(each, text)]
            yield from ((model, each) for each in fields if each.name not in ours)


def _hostile(value: Any) -> Any:
    """Return the JSON with each text in it made hostile, and a hostile key in each object."""
    if isinstance(value, dict):
        return {**{name: _hostile(each) for name, each in value.items()}, HOSTILE: HOSTILE}
    if isinstance(value, list):
        return [*map(_hostile, value), *([HOSTILE] if value and isinstance(value[0], str) else [])]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


def plant(story: Story) -> None:
    """Make the text of every row hostile, and the payloads of the story."""
    for model, field in _columns():
        rows = models.QuerySet(model)  # entries refuse it by their manager
        for number, row in enumerate(rows.order_by("pk")):
            value = getattr(row, field.attname)
            if value is None or field.primary_key:
                continue
            is_json = isinstance(field, models.JSONField)
            planted = _hostile(value) if is_json else f"{number}{HOSTILE}"[: field.max_length]
            rows.filter(pk=row.pk).update(**{field.name: planted})
    for record in story.made:
        if record.payload is not None and record.tenant is not None:
            Payload.objects.filter(entry=record.id).delete()
            said(record.tenant, record.id, _hostile(record.payload))


class Reader(HTMLParser):
    """Reads a page: what is not balanced, and what would run."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attrs)
        source, kind = values.get("src") or "", values.get("type")
        if tag == "script" and not source.startswith("/static/") and kind != "application/json":
            self.wrong.append(f"a script {values}")
        self.wrong += [f"{tag} {name}" for name, _ in attrs if name.startswith(("on", "style"))]
        links = [values.get(name) or "" for name in ("href", "src", "action", "formaction")]
        self.wrong += [
            each for each in links if re.match(r"\s*(javascript|vbscript):", each, re.IGNORECASE)
        ]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Ignore: elements of SVG that end at once."""

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(f"</{tag}> in line {self.getpos()[0]}")


def wrong_with(html: str) -> list[str]:
    """Return what is wrong with a page."""
    reader = Reader()
    reader.feed(html)
    fields = re.compile(
        r'<textarea\b.*?</textarea>|<script\b.*?</script>|\svalue="[^"]*"', re.DOTALL
    )
    bare = fields.sub("", html)
    seen = [f"U+{ord(each):04X}" for each in UNSEEN if each in bare]
    raw = [each for each in ("<img src=x", "<script src=/x") if each in html]
    return [*reader.wrong[:5], *reader.open, *seen, *raw]


@pytest.fixture
def planted(acme: Things, globex: Things) -> Things:
    things, story = busy(acme)
    plant(story)
    return things


def _faults(
    client: Client, things: Things, patterns: Iterable[URLPattern], *, post: bool = False
) -> tuple[dict[str, Any], int]:
    """Visit pages; return what is wrong with each, and how many show what was planted."""
    fields, faults, shown = dict.fromkeys(body(things), HOSTILE), {}, 0
    for pattern in patterns:
        if pattern.name in ("logout", "leave", "close"):
            continue
        path = address(pattern, things, things.slug)
        response = client.post(path, fields) if post else client.get(path)
        text = response.content.decode()
        is_page = response.get("Content-Type", "").startswith("text/html")
        wrong = wrong_with(text) if is_page else []
        if response.status_code >= 500 and not path.endswith("status.json"):
            wrong.append(str(response.status_code))
        faults |= {path: wrong} if wrong else {}
        shown += is_page and SHOWN in text
    return faults, shown


OF_PAYLOADS: Final = [each for each in PATTERNS if permission_of(each) is Permission.VIEW_PAYLOADS]
ABOUT_ONESELF: Final = [
    each for each in PATTERNS if permission_of(each) is None or each.name == "connect"
]
PAGES: Final = {
    "staff": PATTERNS,
    "auditor": [*OF_PAYLOADS, *ONE_OF_EACH_GUARD],
    "owner": [*ABOUT_ONESELF, *ONE_OF_EACH_GUARD],
    "member": [*ABOUT_ONESELF, *ONE_OF_EACH_GUARD],
    "stranger": ONE_OF_EACH_GUARD,
}
"""Staff see all pages but those of payloads. Of each guard, the others get one page, or its refusal:
an operator what an owner gets. Pages about the user are shown to those who have something there."""


@pytest.mark.parametrize("role", PAGES)
def test_every_page_escapes_hostile_text(role, cast, planted, browse):
    faults, shown = _faults(browse(getattr(cast, role)), planted, PAGES[role])
    assert faults == {}
    # The proof that it was planted: most pages of a tenant show some of it.
    assert shown > {"staff": 30, "auditor": len(OF_PAYLOADS)}.get(role, 0)


def test_hostile_text_in_any_form_field_gets_a_valid_page(
    planted: Things, staff: Client, owner: Client
) -> None:
    for client, patterns in ((owner, ABOUT_ONESELF), (staff, PATTERNS)):
        faults, _ = _faults(client, planted, patterns, post=True)
        assert faults == {}


def test_the_page_checker_detects_faulty_html() -> None:
    assert wrong_with("<p><b>x</b></p><br>") == []
    assert wrong_with(HOSTILE) != []
    assert wrong_with("<p><b></p></b>") != []
    assert wrong_with("<a href='javascript:x'>x</a>") == ["javascript:x"]
    assert wrong_with("a\u202eb") == ["U+202E"]
