"""Tests of what all pages share: headers, wording, examples, snippets to paste."""

import re
import shlex
from datetime import timedelta
from itertools import pairwise

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from mcphost.console import navigation, urls
from mcphost.console.middleware import FRAMING, STRICT
from mcphost.console.primitives import examples
from mcphost.console.purposes import PURPOSES
from mcphost.console.records.filters import STATES
from mcphost.console.templatetags.console import (
    badge,
    brief,
    coded,
    duration,
    lasted,
    size,
    when,
)
from mcphost.console.templatetags.questions import outcome
from mcphost.console.tenants import clients
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.opening import open_post
from tests.console.things import Things

URL = "http://testserver/t/acme/mcp"


@pytest.mark.django_db
def test_every_page_has_the_strict_policy_and_nothing_comes_from_elsewhere() -> None:
    inside, outside = Client().get("/admin/login/"), Client().get("/nowhere")
    assert (inside.status_code, outside.status_code) == (200, 404)
    for page in (inside, outside):
        assert page["Content-Security-Policy"] == STRICT
        assert "camera=()" in page["Permissions-Policy"]
    assert "unsafe" not in STRICT
    assert "http" not in STRICT
    assert "frame-ancestors 'none'" in STRICT


LOOSER_PAGES: dict[str, str] = {}
"""Pages whose policy is not strict, each with its reason: there are none."""
_FORBIDDEN = re.compile(
    r"""<style(?!\ nonce=)|\sstyle=|\son(?!e=)[a-z]+=|javascript:|x-data|x-on:|hx-|<script(?![^>]*\ssrc=)|unsafe-""",
    re.IGNORECASE,
)


def test_no_template_needs_a_looser_policy() -> None:
    folder = settings.BASE / "templates"
    texts = {path.name: path.read_text() for path in folder.rglob("*.html")}
    assert len(texts) > 80
    wrong = {name: _FORBIDDEN.findall(text) for name, text in texts.items()}
    assert {name: found for name, found in wrong.items() if found} == LOOSER_PAGES


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "status"),
    [("/admin/users/", 403), ("/admin/t/nowhere/tools/", 403), ("/admin/nowhere/", 404)],
)
def test_refusals_in_the_console_have_its_frame_and_ways_on(owner: Client, path: str, status: int):
    page = owner.get(path)
    assert page.status_code == status
    text = page.content.decode()
    for part in ('id="nav-sidebar"', "Where to go on", 'href="/admin/you/"'):
        assert part in text
    assert "nowhere" not in text


@pytest.mark.django_db
def test_pages_outside_of_the_frame_lead_back_and_tell_visitors_nothing(owner: Client) -> None:
    assert "To the dashboard" in owner.get("/nowhere").content.decode()
    page = Client().get("/admin/nowhere/")
    assert page.status_code == 404
    assert b"nav-sidebar" not in page.content


@pytest.mark.django_db
def test_every_page_says_what_it_is_for(owner: Client, acme: Things) -> None:
    tools = ("tools/", "tools/new/", f"tools/{acme.tool}/", f"tools/{acme.tool}/edit/")
    for path in ("", *tools, "calls/", "audit-log/", "tokens/", "members/"):
        page = owner.get(f"/admin/t/acme/{path}")
        purpose = page.context["purpose"]
        assert purpose.endswith(".")
        assert f'<p class="c-purpose">{purpose}</p>' in page.content.decode()


def test_purposes_are_of_pages_that_exist_and_of_all_in_the_sidebar() -> None:
    names = {str(each.name) for each in urls.urlpatterns}
    assert set(PURPOSES) - names == set()
    shown = {page[2] for page in (*navigation.TENANT_PAGES, *navigation.PLATFORM_PAGES)}
    assert shown - set(PURPOSES) == set()


@pytest.mark.django_db
def test_the_glossary_is_for_every_account_and_in_order(owner: Client) -> None:
    page = owner.get("/admin/glossary/")
    terms = [term.name for term in page.context["terms"]]
    assert terms == sorted(terms, key=str.lower)
    assert "<code>mcp:list</code>" in page.content.decode()
    assert owner.get("/admin/").content.decode().count('href="/admin/glossary/"') == 1


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(seconds=-5), "in a moment"),
        (timedelta(minutes=3, seconds=9), "3\xa0minutes ago"),
        (timedelta(days=-2, seconds=-9), "in 2\xa0days"),
        (timedelta(days=31, seconds=9), "20"),
    ],
)
def test_times_are_said_as_people_do_with_the_exact_one_beside(before: timedelta, said: str):
    moment = timezone.now() - before
    shown = when(moment)
    assert f">{said}" in shown
    exact = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"
    assert f'title="{exact}"' in shown
    assert when(None) == "never"


def test_durations_and_sizes_have_the_unit_that_suits_them() -> None:
    durations = [lasted(each) for each in (None, 0.0031, 8.44, 61, 3725)]
    assert durations == ["", "3 ms", "8.4 s", "1 min 1 s", "1 h 2 min"]
    assert [duration(None), duration(1500), duration(2_500_000)] == ["-", "1.5 ms", "2.50 s"]
    assert [size(None), size(100), size(2048)] == ["-", "100 B", "2.0 KiB"]


def test_badges_and_outcomes_are_told_in_words_with_a_colour_and_no_markup() -> None:
    assert 'c-good">complete<' in badge("complete")
    assert 'c-bad">timed out<' in badge("timed_out")
    assert "<b>" not in badge("<b>")
    assert [outcome(each) for each in STATES if "_" in outcome(each)] == []
    assert outcome("yielded") == "moved to another process"
    assert outcome("asked_too_often") == "too many input requests"


def test_code_between_backticks_is_shown_as_code_and_markup_as_text() -> None:
    assert coded("`src` must be <b>") == "<code>src</code> must be &lt;b&gt;"
    assert coded("one ` alone") == "one ` alone"


@pytest.mark.django_db
def test_a_message_shows_code_without_backticks(operator: Client, acme: Things) -> None:
    page = operator.post(
        "/admin/t/acme/tools/new/?kind=script",
        {"kind": "script", "name": "one", "code": "x = 1", "_save": "1"},
    ).content.decode()
    assert "begin with <code>_</code>" in page
    assert "`_`" not in page


def test_facts_are_told_in_a_line() -> None:
    facts = {
        "user": "olga",
        "is_staff": True,
        "public": False,
        "scopes": ["a", "b"],
        "before": None,
        "limit": 5,
        "name": "x",
        "expires_at": "2027-02-24T04:59:47.834663+00:00",
    }
    told = "is staff: yes, public: no, scopes: a b, limit: 5, name: x"
    assert brief(facts) == f"{told}, expires at: 2027-02-24 04:59 UTC"


def test_example_arguments_fit_the_kinds_of_their_schema() -> None:
    kinds = {
        "text": {"type": "string"},
        "count": {"type": "integer", "minimum": 3},
        "ratio": {"type": "number"},
        "yes": {"type": "boolean"},
        "choice": {"enum": ["a", "b"]},
        "fixed": {"const": 7},
        "usual": {"type": "string", "default": "d"},
        "shown": {"type": "string", "examples": ["e"]},
        "items": {"type": "array", "items": {"type": "integer"}},
        "bare": {"type": "array"},
        "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "several": {"type": ["string", "null"]},
        "none": {"type": []},
        "named": {"$ref": "#/$defs/Point"},
        "lost": {"$ref": "#/$defs/Nowhere"},
        "anything": True,
    }
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    schema = {
        "type": "object",
        "properties": {**kinds, "left_out": {"type": "string"}},
        "required": [*kinds, "unheard_of"],
        "$defs": {"Point": point},
    }
    assert examples.arguments(schema) == {
        "text": "text",
        "count": 3,
        "ratio": 1.5,
        "yes": True,
        "choice": "a",
        "fixed": 7,
        "usual": "d",
        "shown": "e",
        "items": [1],
        "bare": [],
        "either": None,
        "several": "text",
        "none": None,
        "named": {"x": 1},
        "lost": None,
        "anything": None,
    }


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}}, "required": ["next"]}
    schema = {
        "$ref": "#/$defs/N",
        "properties": {"n": node},
        "required": ["n"],
        "$defs": {"N": node},
    }
    assert "next" in str(examples.arguments(schema))


def test_the_example_call_is_what_the_protocol_asks_for() -> None:
    words = shlex.split(
        clients.curl(
            URL, "tools/call", "say", {"name": "say", "arguments": {"text": "it's"}}
        ).replace("\\\n", "")
    )
    assert words[:2] == ["curl", URL]
    headers = dict(word.split(": ", 1) for option, word in pairwise(words) if option == "-H")
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    exchange = open_post(Headers(raw), words[-1].encode())
    assert isinstance(exchange, Exchange)
    assert (exchange.method, exchange.params["name"]) == ("tools/call", "say")
    assert exchange.params["arguments"] == {"text": "it's"}


def test_style_elements_need_a_nonce_beside_the_editor(acme: Things, owner: Client) -> None:
    """The script editor makes some; the page itself has none."""
    assert owner.get("/admin/t/acme/")["Content-Security-Policy"] == STRICT
    pages = [owner.get("/admin/t/acme/tools/new/?kind=script") for _ in range(2)]
    policies = [page["Content-Security-Policy"] for page in pages]
    nonces = [re.search(r"'nonce-([\w-]{22})'", policy) for policy in policies]
    for page, policy, nonce in zip(pages, policies, nonces, strict=True):
        assert policy == f"{STRICT} 'nonce-{nonce[1]}'{FRAMING}"
        text = page.content.decode()
        assert f'data-nonce="{nonce[1]}"' in text
        assert "<style" not in text
    assert policies[0] != policies[1]
