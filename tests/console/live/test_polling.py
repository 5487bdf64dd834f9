"""Tests of live lists by polling: the same rows, for clients that cannot open a socket."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from mcphost.audit.summaries import selectors
from tests.console.live.reading import ACME, ALL
from tests.console.things import Things, recorded

pytestmark = pytest.mark.django_db


def asked(client: Client, query: str, path: str = ACME) -> Any:
    return json.loads(client.get(f"{path}?{query}").content)


def test_a_poll_returns_what_changed_and_the_cursor_to_go_on_from(
    auditor: Client, acme: Things, globex: Things
) -> None:
    since = selectors.newest()
    assert asked(auditor, f"cursor={since}") == {"cursor": str(since)}
    made = uuid4()
    recorded(acme.tenant, made)
    recorded(globex.tenant, uuid4())
    found = asked(auditor, f"cursor={since}")
    assert [row["call"] for row in found["rows"]] == [str(made)]
    assert asked(auditor, f"cursor={found['cursor']}") == {"cursor": str(selectors.newest())}


def test_the_filters_of_the_address_apply(staff: Client, acme: Things, globex: Things) -> None:
    since = selectors.newest()
    recorded(acme.tenant, uuid4(), target="one")
    recorded(globex.tenant, uuid4(), target="two")
    found = asked(staff, f"cursor={since}&tool=two", ALL)
    assert ["two" in row["html"] for row in found["rows"]] == [True]
    assert len(found["gone"]) == 1
    assert asked(staff, f"cursor={since}&tool=two&tenant=acme", ALL)["rows"] == []


def test_characters_that_are_not_seen_are_made_visible_in_rows(
    auditor: Client, acme: Things
) -> None:
    since = selectors.newest()
    recorded(acme.tenant, uuid4(), target="a\u202eb", client_name="c\u200bd")
    (row,) = asked(auditor, f"cursor={since}")["rows"]
    assert "a\u27e8U+202E\u27e9b" in row["html"]
    assert "c\u27e8U+200B\u27e9d" in row["html"]


def test_a_cursor_that_is_none_is_an_error_in_words(auditor: Client, acme: Things) -> None:
    for query in ("", "cursor=x", "cursor=-1"):
        reply = auditor.get(f"{ACME}?{query}")
        assert reply.status_code == 400
        assert "cursor" in reply.json()["error"]


def test_a_filter_value_that_does_not_exist_shows_nothing(auditor: Client, acme: Things) -> None:
    since = selectors.newest()
    recorded(acme.tenant, uuid4())
    assert asked(auditor, f"cursor={since}&outcome=nonsense").get("rows", []) == []


def test_the_page_names_where_its_live_rows_come_from(
    auditor: Client, staff: Client, acme: Things
) -> None:
    page = auditor.get("/admin/t/acme/calls/?tool=a").content.decode()
    assert f'data-url="{ACME}" data-query="tool=a" data-cursor="{selectors.newest()}"' in page
    assert f'data-url="{ALL}"' in staff.get("/admin/calls/").content.decode()
