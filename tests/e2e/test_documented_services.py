"""The services of docs/http-tools.md and the tool that calls them, as they are written there."""

import http.client
import json
import re
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
from mcphost.kinds.http.configs import HttpToolConfig
from tests.e2e.admin import Admin, Form
from tests.e2e.asking import Asker, accept, wait_until
from tests.e2e.callers import command
from tests.e2e.node_client import NODE
from tests.e2e.nodes import Node
from tests.e2e.processes import ROOT, Server, free_port, manage
from tests.e2e.relay import ANSWERS, Relay
from tests.e2e.talking import Talk, conversing

PAGE = (ROOT / "docs" / "http-tools.md").read_text()
PACKAGES = Path(__file__).parent / "node_services"
TOKEN = "a-token-to-try"
TOOL = "place_order"
SESSION, STATELESS = "2025-11-25", "2026-07-28"
REVISIONS = {"python": SESSION, "fastmcp": STATELESS}
"""The clients, and the revision that each speaks."""
CONFIG = """
import json
from mcphost.catalogue.models import Primitive
print(json.dumps(Primitive.objects.get(name="place_order").live.snapshot["config"]))
"""
STOP_SECONDS = 20
PAGES = {
    "*Settings*": "settings/",
    "*Secrets*, *Store secret*": "secrets/new/",
    "*Tools*, *New tool*, *An HTTP request*": "tools/new/?kind=http",
}


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

    relay: Relay
    database: Path
    node: Node

    def placed(self, item: str) -> list[dict[str, Any]]:
        """The orders of an item that the service has stored."""
        with closing(sqlite3.connect(self.database)) as database:
            rows = database.execute("SELECT details FROM orders").fetchall()
        orders = [json.loads(details) for (details,) in rows]
        return [order for order in orders if order["item"] == item]


@pytest.fixture(scope="module")
def tool(calling_out: Node, relay: Relay) -> None:
    """The tool, set up in the admin. It calls the relay, behind which there is any of the services."""
    _set_up(calling_out.server, relay.port)


@pytest.fixture(scope="module", params=SERVICES)
def place(
    tool: None,
    calling_out: Node,
    relay: Relay,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """Each of the two services."""
    folder = tmp_path_factory.mktemp(request.param)
    with _running(request.param, folder) as port:
        relay.service = port
        yield Place(relay, folder / "orders.db", calling_out)


@pytest.fixture
def calls(place: Place) -> Server:
    return place.node.server if place.node.lives else place.node.start()


@contextmanager
def _running(name: str, folder: Path) -> Iterator[int]:
    """The port of a service, which answers by now."""
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
    try:
        return bool(_sent(port, {}))
    except OSError:
        return False


def _sent(port: int, body: Any, media_type: str = "application/json", **headers: str) -> Any:
    """A request to the service by hand; its status and its JSON."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    fields = {"Content-Type": media_type, **named}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=STOP_SECONDS)) as line:
        line.request("POST", "/orders", json.dumps(body), fields)
        response = line.getresponse()
        return response.status, json.loads(response.read())


def _set_up(server: Server, port: int) -> None:
    """Fill in the admin's forms as the table of the page says, with another port."""
    admin = Admin(server.port, (server.home / "admin-password").read_text().strip())
    for page, fields in _documented_forms(port).items():
        path = f"/admin/t/demo/{PAGES[page]}"
        form = Form(admin.get(path))
        for label, value in fields.items():
            group, _, field = label.rpartition(": ")
            form.fill(field, value, group.lower())
        pressed = {"_publish": ""} if "tools" in path else {}
        admin.post(path, **form.fields, **pressed)


def _documented_forms(port: int) -> dict[str, dict[str, str]]:
    forms: dict[str, dict[str, str]] = {}
    table = PAGE.split("| page | field | value |\n| --- | --- | --- |\n")[1].split("\n\n")[0]
    page = ""
    for row in table.splitlines():
        named, label, value = (cell.strip() for cell in row.strip("|").split("|"))
        page = named or page
        forms.setdefault(page, {})[label] = value.strip("`").replace(":9000", f":{port}")
    return forms


@pytest.fixture(params=REVISIONS)
def talk(request: pytest.FixtureRequest, calls: Server, tmp_path: Path) -> Iterator[Talk]:
    """A client that has connected and has found the tool."""
    revision = REVISIONS[request.param]
    asked = {"revision": revision} if revision == SESSION else {}
    argv = command(request.param)
    with conversing(argv, tmp_path, url=calls.url, token=calls.token, **asked) as talk:
        met = talk.hear("met")
        assert met["revision"] == revision
        assert TOOL in met["tools"]
        yield talk


@pytest.fixture
def item(request: pytest.FixtureRequest) -> str:
    """What this test orders and no other."""
    return str(request.node.name)


def _asked(talk: Talk, item: str) -> None:
    """Call the tool, and be asked for the slot."""
    talk.say({"call": TOOL, "arguments": {"item": item, "amount": 3}})
    question = talk.hear("asked")
    assert question["message"] == f"When should 3 of {item} be delivered?"
    assert question["requestedSchema"]["properties"]["slot"]["enum"] == ["morning", "evening"]


def _result(talk: Talk) -> Mapping[str, Any]:
    done: Mapping[str, Any] = talk.hear("done")
    assert not done.get("isError"), done
    result: Mapping[str, Any] = done["structuredContent"]
    return result


def test_the_forms_make_the_documented_configuration(place: Place, calls: Server) -> None:
    shown = manage(calls.home, "shell", "-v", "0", "-c", CONFIG)
    assert shown.returncode == 0, shown.stderr
    documented = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[-1]
    documented = documented.replace(":9000", f":{place.relay.port}")
    stored = HttpToolConfig.model_validate_json(shown.stdout)
    assert stored == HttpToolConfig.model_validate_json(documented)


def test_an_order_is_placed_in_the_slot_that_the_user_chose(
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


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_user_who_does_not_answer_orders_nothing(
    place: Place, talk: Talk, item: str, action: str
) -> None:
    _asked(talk, item)
    talk.say({"action": action})
    assert _result(talk) == {"placed": False, "reason": f"The user's answer: {action}."}
    assert place.placed(item) == []


def test_a_response_that_is_lost_is_asked_for_again_and_the_service_acts_once(
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


def test_a_forged_state_is_refused(place: Place, talk: Talk, item: str) -> None:
    place.relay.forges = True
    try:
        _asked(talk, item)
        talk.say(accept(slot="morning"))
        done = talk.hear("done")
    finally:
        place.relay.forges = False
    assert done["isError"]
    assert "status 400" in done["content"][0]["text"]
    assert "This service did not sign the state." in done["content"][0]["text"]
    assert place.placed(item) == []


def test_a_service_refuses_what_the_platform_does_not_send(place: Place) -> None:
    port, order = place.relay.service, {"item": "by hand", "amount": 1}
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert _sent(port, order, Idempotency_Key="1")[0] == 401
    assert _sent(port, order, Idempotency_Key="1", Authorization="Bearer no")[0] == 401
    assert _sent(port, order, **bearer)[0] == 400
    assert _sent(port, {}, **bearer, Idempotency_Key="1")[0] == 400
    status, asked = _sent(port, order, **bearer, Idempotency_Key="1")
    assert status == 200

    def answered(key: str, slot: str) -> Any:
        body = {"state": asked["state"], "responses": {"slot": accept(slot=slot)}}
        return _sent(port, body, ANSWERS, **bearer, Idempotency_Key=key)

    assert answered("2", "noon")[0] == 400
    assert answered("2", "morning") == answered("2", "morning")
    assert answered("2", "evening")[0] == 422
    assert len(place.placed("by hand")) == 1


@pytest.mark.parametrize("place", ["flask"], indirect=True)
def test_the_service_acts_once_although_the_server_is_killed_before_its_response(
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
