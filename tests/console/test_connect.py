"""Tests of the page that connects a client."""

import json
import shlex

import pytest
from django.test import Client

from mcphost.console.tenants import clients
from mcphost.identity.models import Token

PAGE = "/admin/t/acme/connect/"
URL = "http://testserver/t/acme/mcp"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("acme")]


def setups(client: Client) -> dict[str, str]:
    return {each.title: each.text for each in client.get(PAGE).context["snippets"]}


def test_there_is_something_to_paste_for_every_client_with_the_real_address(
    operator: Client,
) -> None:
    found = setups(operator)
    assert set(found) == {
        "Claude Code",
        "Claude Desktop",
        "VS Code",
        "Cursor",
        "Windsurf",
        "MCP Inspector",
        "Python",
        "TypeScript",
        "curl",
    }
    for title, text in found.items():
        assert URL in text, title
        assert clients.STAND_IN in text, title
    for title in ("Claude Desktop", "Cursor", "Windsurf"):
        assert "acme" in json.loads(found[title])["mcpServers"]
    compile(found["Python"], "snippet", "exec")
    assert shlex.split(found["MCP Inspector"])[0] == "npx"


def test_programs_call_a_published_tool(operator: Client) -> None:
    called = operator.get(PAGE).context["called"]
    found = setups(operator)
    for title in ("Python", "TypeScript", "curl"):
        assert called.tool in found[title]


def test_a_token_is_issued_for_oneself_and_shown_once(operator: Client) -> None:
    page = operator.post(PAGE, {"name": "laptop"})
    token = Token.objects.get(name="laptop")
    assert (token.owner.username, token.issued_by) == ("operator", "operator")  # type: ignore[union-attr]
    plaintext = page.context["token"].plaintext
    assert page.content.decode().count(plaintext) == 10  # itself, and in each snippet
    assert plaintext not in operator.get(PAGE).content.decode()


def test_a_token_needs_a_name(operator: Client) -> None:
    before = Token.objects.count()
    assert "c-error" in operator.post(PAGE, {"name": ""}).content.decode()
    assert Token.objects.count() == before


def test_staff_without_a_role_get_no_token(staff: Client) -> None:
    before = Token.objects.count()
    page = staff.post(PAGE, {"name": "laptop"}).content.decode()
    assert "no token can act as you here" in page
    assert Token.objects.count() == before
