"""The services of docs/http-tools.md and the tool that calls them, as they are written there."""

import json
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.environment import node_folder
from tests.e2e.callers import command
from tests.e2e.client_process import Talk, conversing
from tests.e2e.handmade_calls import Asker, accept, wait_until
from tests.e2e.node_client import NODE
from tests.e2e.nodes import Node
from tests.e2e.processes import ROOT, Server, free_port, manage
from tests.e2e.recording_proxy import ANSWERS, Relay

PAGE = (ROOT / "docs" / "http-tools.md").read_text()
PACKAGES = Path(__file__).parent / "node_services"
TOKEN = "a-token-to-try"
TOOL = "place_order"
SESSION, STATELESS = "2025-11-25", "2026-07-28"
CLIENTS = {"flask": ("python", SESSION), "express": ("fastmcp", STATELESS)}
"""The client that calls by each service, and the revision that it speaks."""
PUBLISH = """
import json
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import update_tenant
from mcphost.vault.secrets.services import create_secret
kinds.discover()
actor, tenant = Actor.system("a test"), Tenant.objects.get(slug="demo").id
update_tenant(tenant, TenantFields("Demo", outgoing_hosts=("http://{host}",)), actor=actor)
create_secret(tenant, "orders_token", "{token}", hosts=["{host}"], places=["header"], actor=actor)
config = json.loads({config!r})
fields = PrimitiveFields("{tool}", config, kind="http", description="Order an item.")
services.publish(services.create(tenant, fields, actor).id, actor)
"""
STOP_SECONDS = 20


def _program(language: str) -> str:
    (program,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(program)


def _flask(folder: Path, port: int) -> list[str]:
    (folder / "orders.py").write_text(_program("python"))
    return [sys.executable, "-m", "flask", "--app", "orders", "run", "--port", str(port)]


def _express(folder: Path, port: int) -> list[str]:
    packages = node_folder(PACKAGES)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    (folder / "orders.mjs").write_text(_program("javascript"))
    return [str(NODE), "orders.mjs"]


SERVICES = {"flask": _flask, "express": _express}


@dataclass(frozen=True)
class Place:
    """One of the services behind the relay, and the server that calls it."""

    name: str
    relay: Relay
    database: Path
    node: Node

    def placed(self, item: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("SELECT details FROM orders").fetchall()
        orders = [json.loads(details) for (details,) in rows]
        return [order for order in orders if order["item"] == item]


@pytest.fixture(scope="module")
def tool(calling_out: Node, relay: Relay) -> None:
    """The documented tool. It calls the relay, behind which there is any of the services."""
    config = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[-1]
    host = f"127.0.0.1:{relay.port}"
    config = config.replace("127.0.0.1:9000", host)
    program = PUBLISH.format(host=host, token=TOKEN, tool=TOOL, config=config)
    ports = {"MCPHOST_EGRESS_LOOPBACK_PORTS": str(relay.port)}
    done = manage(calling_out.home, "shell", "-c", program, env=ports)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=SERVICES)
def place(
    tool: None,
    calling_out: Node,
    relay: Relay,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp(request.param)
    with _running(request.param, folder) as port:
        relay.service = port
        yield Place(request.param, relay, folder / "orders.db", calling_out)


@pytest.fixture
def calls(place: Place) -> Server:
    return place.node.server if place.node.lives else place.node.start()


@contextmanager
def _running(name: str, folder: Path) -> Iterator[int]:
    port = free_port()
    settings = {"ORDERS_TOKEN": TOKEN, "ORDERS_STATE_KEY": "only-the-service-has-it"}
    log = folder / "service.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            SERVICES[name](folder, port),
            cwd=folder,
            env={**settings, "PORT": str(port), "PATH": "/usr/bin:/bin"},
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(port))
        assert process.poll() is None, log.read_text()
        yield port
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
    assert "Traceback" not in log.read_text(), log.read_text()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def talk(place: Place, calls: Server, tmp_path: Path) -> Iterator[Talk]:
    client, revision = CLIENTS[place.name]
    asked = {"revision": revision} if revision == SESSION else {}
    with conversing(command(client), tmp_path, url=calls.url, token=calls.token, **asked) as talk:
        met = talk.hear("met")
        assert met["revision"] == revision
        assert TOOL in met["tools"]
        yield talk


@pytest.fixture
def item(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def _asked(talk: Talk, item: str) -> None:
    talk.say({"call": TOOL, "arguments": {"item": item, "amount": 3}})
    question = talk.hear("asked")
    assert question["message"] == f"When should 3 of {item} be delivered?"
    assert question["requestedSchema"]["properties"]["slot"]["enum"] == ["morning", "evening"]


def _result(talk: Talk) -> Mapping[str, Any]:
    done: Mapping[str, Any] = talk.hear("done")
    assert not done.get("isError"), done
    result: Mapping[str, Any] = done["structuredContent"]
    return result


def test_an_order_is_placed_in_the_slot_from_the_input_response(
    place: Place, talk: Talk, item: str
) -> None:
    place.relay.seen.clear()
    _asked(talk, item)
    assert place.placed(item) == []
    talk.say(accept(slot="evening"))
    order = {"item": item, "amount": 3, "slot": "evening"}
    result = _result(talk)
    assert result == {"placed": True, "number": result["number"], **order}
    assert place.placed(item) == [order]
    first, second = place.relay.seen
    assert second.media_type == ANSWERS
    assert first.key != second.key
    assert json.loads(second.body)["request"] == json.loads(first.body)


def test_a_declined_input_request_places_no_order(place: Place, talk: Talk, item: str) -> None:
    _asked(talk, item)
    talk.say({"action": "decline"})
    assert _result(talk) == {"placed": False, "reason": "The user's answer: decline."}
    assert place.placed(item) == []


def test_a_lost_response_is_retried_and_the_service_acts_once(
    place: Place, talk: Talk, item: str
) -> None:
    _asked(talk, item)
    place.relay.seen.clear()
    place.relay.losses = 2
    talk.say(accept(slot="morning"))
    assert _result(talk)["placed"] is True
    attempts = place.relay.seen
    assert len(attempts) == 3
    assert len(set(attempts)) == 1, "the same key and the same body"
    assert len(place.placed(item)) == 1


@pytest.mark.parametrize("place", ["flask"], indirect=True)
def test_the_service_acts_once_when_the_server_is_killed_before_the_response(
    place: Place, calls: Server, item: str
) -> None:
    """The client repeats its request, and the next process sends the answers under the same key."""
    asker = Asker(TOOL, {"item": item, "amount": 1})
    answers = {"slot": accept(slot="morning")}
    relay = place.relay
    with ThreadPoolExecutor(1) as pool:
        state = asker.leg(calls)["requestState"]
        relay.seen.clear()
        relay.holds.clear()
        lost = pool.submit(asker.leg, calls, state, answers)
        wait_until(lambda: len(place.placed(item)) == 1)
        place.node.kill()
        relay.holds.set()
        assert lost.exception(STOP_SECONDS) is not None
    result = asker.leg(place.node.start(), state, answers)
    assert result["structuredContent"]["placed"] is True
    first, second = relay.seen
    assert first == second
    assert len(place.placed(item)) == 1
