"""A user signs something off on a page of the platform, in a real browser."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.e2e import raw
from tests.e2e.browser.conftest import Visit
from tests.e2e.processes import Server

CAPABLE = {f"{raw.PREFIX}clientCapabilities": {"elicitation": {"url": {}}}}


def asked(server: Server) -> dict[str, Any]:
    message = raw.call("sign_off", {"release": "v7"}, **CAPABLE)
    result: dict[str, Any] = raw.post(server, message, server.token).message["result"]
    return result


def path_of(result: Mapping[str, Any]) -> str:
    return urlsplit(result["inputRequests"]["page"]["params"]["url"]).path


def ended(server: Server, result: Mapping[str, Any]) -> str:
    message = raw.call("sign_off", {"release": "v7"}, **CAPABLE)
    message["params"] |= {
        "requestState": result["requestState"],
        "inputResponses": {"page": {"action": "accept"}},
    }
    reply = raw.post(server, message, server.token)
    text: str = json.loads(json.dumps(reply.message))["result"]["content"][0]["text"]
    return text


def test_a_call_ends_when_a_user_confirms_its_request_on_the_page(
    visit: Visit, server: Server
) -> None:
    result = asked(server)
    page = visit("admin")
    page.goto(path_of(result))
    expect(page.get_by_role("heading", name="Confirm “Sign off”?")).to_be_visible()
    expect(page.get_by_text("sign_off").first).to_be_visible()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert ended(server, result) == "v7 is signed off."
    page.goto(path_of(result))
    expect(page.get_by_role("heading", name="You have confirmed this")).to_be_visible()
