"""The page of the API: every operation and schema of the document, with local assets only."""

import re
from collections import Counter

import orjson
import pytest
from django.test import Client

from tests.api.url_walk import ROUTES
from tests.openapi_document import FILE

DOCUMENT = orjson.loads(FILE.read_bytes())


@pytest.mark.django_db
def test_the_page_has_a_section_for_each_operation_and_schema_of_the_document() -> None:
    response = Client().get("/api/docs/")
    assert response.status_code == 200
    page = response.content.decode()
    assert page.count("data-method=") == len(ROUTES)
    ids = Counter(re.findall(r' id="([^"]+)"', page))
    assert set(ids.values()) == {1}
    for name in DOCUMENT["components"]["schemas"]:
        assert f"schema-{name}" in ids
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(ids)


@pytest.mark.django_db
def test_the_page_loads_nothing_from_outside_and_has_no_inline_script() -> None:
    response = Client().get("/api/docs/")
    page = response.content.decode()
    loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', page)
    assert loaded
    assert all(address.startswith("/static/") for address in loaded)
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=", page)
    policy = response.headers["Content-Security-Policy"]
    assert "script-src 'self'; style-src 'self'" in policy
    assert "set-cookie" not in {name.lower() for name in response.headers}


@pytest.mark.django_db
def test_each_operation_has_a_command_that_names_what_is_to_be_replaced() -> None:
    page = Client().get("/api/docs/").content.decode()
    commands = re.findall(r"<code>(curl -X [^<]+)</code>", page)
    assert len(commands) == len(ROUTES)
    assert not any("{" in command.partition("\n")[0] for command in commands)
    assert all("Authorization: Bearer $TOKEN" in command for command in commands)
