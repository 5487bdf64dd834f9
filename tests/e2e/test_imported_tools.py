"""A description of a local service, imported in the admin; its tools are called by real clients."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.admin import Admin, Form
from tests.e2e.callers import command
from tests.e2e.nodes import Node
from tests.e2e.orders import Orders
from tests.e2e.processes import Server
from tests.e2e.talking import Talk, conversing

IMPORT = "/admin/t/demo/tools/import/"
CLIENTS = {"python": "2025-11-25", "fastmcp": "2026-07-28"}
OPERATIONS = ("GET /orders/{id}", "POST /orders")


@pytest.fixture(scope="module")
def importing(calling_out: Node, orders: Orders) -> Server:
    """A server whose demo tenant has imported the description and published both tools."""
    server = calling_out.server
    admin = Admin(server.port, (server.home / "admin-password").read_text().strip())
    _import(admin, orders.url)
    return server


def _import(admin: Admin, base: str) -> None:
    settings = Form(admin.get("/admin/t/demo/settings/"))
    settings.fill("Hosts that tools may call", f"{settings.fields['outgoing_hosts']}\n{base}")
    admin.post("/admin/t/demo/settings/", **settings.fields)
    admin.get(IMPORT)
    listed = admin.submit(IMPORT, url=f"{base}/openapi.json", _list="")
    kept = re.search(r'name="kept" value="([^"]+)"', listed)
    assert kept, "the document is not listed"
    preview = admin.submit(IMPORT, kept=kept[1], chosen=OPERATIONS, _preview="")
    assert f"POST {base}/orders" in preview
    admin.post(IMPORT, kept=kept[1], chosen=OPERATIONS, _create="")
    for name in ("place", "look_up"):
        admin.press("demo", "tools", name, "publish")


def _result(talk: Talk) -> Any:
    """The JSON that the service replied, as the client got it."""
    done = talk.hear("done")
    assert not done.get("isError"), done
    return json.loads(done["content"][0]["text"])


@pytest.mark.parametrize("client", CLIENTS)
def test_imported_operations_are_called_by_a_real_client(
    client: str, importing: Server, orders: Orders, tmp_path: Path
) -> None:
    asked = {"revision": CLIENTS[client]} if client == "python" else {}
    told = {"url": importing.url, "token": importing.token, **asked}
    orders.seen.clear()
    with conversing(command(client), tmp_path, **told) as talk:
        met = talk.hear("met")
        assert met["revision"] == CLIENTS[client]
        assert {"place", "look_up"} <= set(met["tools"])
        talk.say({"call": "place", "arguments": {"body": {"item": "tea", "amount": 2}}})
        assert _result(talk) == {"placed": {"item": "tea", "amount": 2}}
        fields = ["item", "amount"]
        talk.say({"call": "look_up", "arguments": {"id": "a/b c", "fields": fields}})
        assert _result(talk) == {"path": "/orders/a%2Fb%20c", "fields": fields}
        talk.say({"call": "look_up", "arguments": {"fields": []}})
        assert talk.hear("done")["isError"]
    assert [method for method, _, _ in orders.seen] == ["POST", "GET"]
