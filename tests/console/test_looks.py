"""Tests of what all pages share: headers, wording, examples, snippets to paste."""

import json
import re
import shlex
from datetime import timedelta
from itertools import pairwise

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.console.middleware import LOOSER, NONCED, STRICT
from mcphost.console.primitives import examples
from mcphost.console.templatetags.console import badge, brief, lasted, pretty, size, took, when
from mcphost.console.tenants import clients
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.opening import open_post
from tests.console.things import Things

URL = "http://testserver/t/acme/mcp"


@pytest.mark.django_db
def test_only_the_console_may_run_inline_scripts_and_nothing_comes_from_elsewhere() -> None:
    inside, outside = Client().get("/admin/login/"), Client().get("/nowhere")
    assert (inside.status_code, outside.status_code) == (200, 404)
    assert inside["Content-Security-Policy"] == LOOSER
    assert outside["Content-Security-Policy"] == STRICT
    assert "unsafe" not in STRICT
    for policy in (LOOSER, STRICT):
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
    assert "camera=()" in inside["Permissions-Policy"]


@pytest.mark.django_db
def test_pages_without_a_frame_lead_back(owner: Client) -> None:
    for path in ("/nowhere", "/admin/users/"):
        assert "To the dashboard" in owner.get(path).content.decode()


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
def test_times_are_said_as_people_do_with_the_exact_one_beside(
    before: timedelta, said: str
) -> None:
    moment = timezone.now() - before
    shown = when(moment)
    assert f">{said}" in shown
    assert moment.strftime("%Y-%m-%d %H:%M:%S UTC") in shown
    assert when(None) == "never"


def test_durations_and_sizes_have_the_unit_that_suits_them() -> None:
    durations = [lasted(each) for each in (None, 0.0031, 8.44, 61, 3725)]
    assert durations == ["", "3 ms", "8.4 s", "1 min 1 s", "1 h 2 min"]
    assert [took(None), took(1500), took(2_500_000)] == ["-", "1.5 ms", "2.50 s"]
    assert [size(None), size(100), size(2048)] == ["-", "100 B", "2.0 KiB"]


def test_badges_have_the_colour_of_what_they_say_and_no_markup() -> None:
    assert 'c-good">complete<' in badge("complete")
    assert 'c-bad">timed out<' in badge("timed_out")
    assert "<b>" not in badge("<b>")


def test_facts_are_told_in_a_line() -> None:
    facts = {
        "user": "olga",
        "is_staff": True,
        "public": False,
        "scopes": ["a", "b"],
        "before": None,
        "limit": 5,
        "name": "x",
    }
    assert brief(facts) == "is staff: yes, public: no, scopes: a b, limit: 5, name: x"


def test_json_is_shown_as_people_read_it() -> None:
    assert pretty({"ü": [1]}) == '{\n  "ü": [\n    1\n  ]\n}'


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


def test_lines_to_paste_hold_the_address_and_the_token() -> None:
    snippets = {each.title: each.text for each in clients.snippets("acme", URL, "mcph_x")}
    assert all(URL in text and "Bearer mcph_x" in text for text in snippets.values())
    assert json.loads(snippets["Cursor"])["mcpServers"]["acme"]["url"] == URL
    compile(snippets["Python"], "snippet", "exec")
    assert shlex.split(snippets["Claude Code"])[-1] == "Authorization: Bearer mcph_x"


def test_the_policy_is_not_weakened_by_what_tenants_have(acme: Things, owner: Client) -> None:
    assert owner.get("/admin/t/acme/")["Content-Security-Policy"] == LOOSER


def test_style_elements_need_a_nonce_beside_the_editor(acme: Things, owner: Client) -> None:
    page = owner.get("/admin/t/acme/tools/new/?kind=script")
    nonce = re.search(r"'nonce-([\w-]{22})'", page["Content-Security-Policy"])
    assert nonce is not None
    assert page["Content-Security-Policy"] == NONCED.format(nonce[1])
    assert NONCED.startswith(LOOSER)
    assert page.content.decode().count("<style") == page.content.decode().count(
        f'<style nonce="{nonce[1]}"'
    )
