"""Every template of the gallery works: picked, saved and published by an operator, then called by
clients of both eras, which answer its questions. Only the address is filled in."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mcphost.console.primitives.gallery import templates
from mcphost.console.primitives.primitives import PUBLISH
from mcphost.kinds.script import functions
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution.outgoing import sender
from mcphost.tenants.services import update_tenant
from tests.cast import ACTOR, Cast, build_cast
from tests.console.forms.submitted_forms import SentForm
from tests.console.primitives.gallery_service import Shop
from tests.egress.conftest import running
from tests.legacy import begin, calling
from tests.mcp import ask
from tests.prepared_rows import Kept
from tests.served import serving
from tests.serving.tasks.task_client import Follower

NEW = "/admin/t/acme/tools/new/"
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}
SESSION = "2025-11-25"
EMPTY = Kept(build_cast)

pytestmark = pytest.mark.django_db(transaction=True)

Answer = tuple[str, Mapping[str, Any]]
"""A part of a question's message, and the content of its answer."""


@dataclass(frozen=True)
class Talk:
    """A call of a template's tool: its arguments, the answers, the text or the structured content
    of its result, and what the service must have seen."""

    arguments: Mapping[str, Any]
    result: Any
    answers: Sequence[Answer] = ()
    seen: Sequence[str] = ()
    progress: Sequence[str] = ()
    deleted: Sequence[str] = ()


TALKS: Mapping[str, Talk] = {
    "approval": Talk(
        {"number": 17},
        "Order 17 is deleted.",
        [("Delete order 17 of Ada?", {"delete": True})],
        ["GET /orders/17", "DELETE /orders/17"],
        deleted=["delete-order-17"],
    ),
    "expenses": Talk(
        {"trip": "Oslo"},
        {
            "trip": "Oslo",
            "expenses": [
                {"category": "travel", "amount": 99.5, "start": "Bonn", "end": "Oslo"},
                {"category": "hotel", "amount": 200, "nights": 2},
                {"category": "meal", "amount": 20},
            ],
            "total": 319.5,
        },
        [
            ("Expense 1 of Oslo", {"category": "travel", "amount": 99.5, "another": True}),
            ("From where", {"start": "Bonn", "end": "Oslo"}),
            ("Expense 2 of Oslo", {"category": "hotel", "amount": 200, "another": True}),
            ("How many nights", {"nights": 2}),
            ("Expense 3 of Oslo", {"category": "meal", "amount": 20, "another": True}),
        ],
    ),
    "pages": Talk(
        {"country": "NO"},
        {"customers": [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}], "complete": True},
        seen=["GET /customers", "GET /customers"],
        progress=["1 customers", "2 customers"],
    ),
    "report": Talk(
        {"month": "2026-10", "regions": ["south"]},
        {
            "month": "2026-10",
            "regions": [{"name": "south", "orders": 5, "revenue": 10.5}],
            "revenue": 10.5,
        },
        seen=["GET /sales"],
        progress=["south is there"],
    ),
    "long_task": Talk(
        {"year": 2026},
        {"orders": 300, "file": "orders-2026.csv"},
        seen=["POST /exports", *["GET /exports/2026"] * 3],
        progress=["100 of 300 orders", "200 of 300 orders", "300 of 300 orders"],
    ),
    "search": Talk(
        {"state": "open"},
        {
            "orders": [
                {"number": 17, "customer": "Ada", "total": 12.5},
                {"number": 18, "customer": "Bob", "total": 7.5},
            ]
        },
        seen=["GET /orders"],
    ),
    "question": Talk(
        {"number": 4, "result": "rejected"},
        "rejected: out of scope",
        [("Ticket 4 is closed as rejected. Why?", {"reason": "out of scope"})],
        ["POST /tickets/4/close"],
    ),
    "asking_service": Talk(
        {"order": 17},
        {"booked": "evening", "order": 17},
        [("Which slot?", {"slot": "evening"})],
        ["POST /deliveries", "POST /deliveries"],
    ),
}
"""By the key of the template, and after a dash which of its calls it is."""


@dataclass
class Heard:
    """What a client has received: the messages of progress, and the result."""

    progress: list[str] = field(default_factory=list)
    result: Mapping[str, Any] = field(default_factory=dict)

    def hear(self, message: Mapping[str, Any]) -> None:
        if message.get("method") == "notifications/progress":
            self.progress.append(message["params"]["message"])


@pytest.fixture
def acme(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    # Scripts that wait between two requests need not wait in tests.
    monkeypatch.setattr(functions, "MAX_SLEEP", 0.01)
    with serving(EMPTY, monkeypatch) as cast:
        yield cast


@asynccontextmanager
async def published(cast: Cast, key: str, settings: Settings) -> AsyncIterator[Shop]:
    """Publish a template with the address of a service, as an operator does in the console."""
    shop = Shop()
    async with running(shop.handle) as service:
        settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset({service.port})
        base = f"http://127.0.0.1:{service.port}"
        fields = replace(cast.acme.fields, outgoing_hosts=(base,))
        await in_database(update_tenant, cast.acme.id, fields, actor=ACTOR)
        await in_database(publish, cast, key, base)
        try:
            yield shop
        finally:
            await sender.close()
            await process.stop()


def publish(cast: Cast, key: str, base: str) -> None:
    browser = Client()
    browser.force_login(cast.operator.user)
    template = templates()[key]
    query = {"template": key, **({"address": base} if template.address else {})}
    page = browser.get(NEW, query)
    fields = SentForm(page.content.decode()).fields
    saved = browser.post(NEW, {**fields, PUBLISH: ""})
    assert saved.status_code == 302, saved.content.decode()


def answered(question: Mapping[str, Any], answers: list[Answer]) -> dict[str, Any]:
    """Return the next answer, to a question that must be the one that is expected."""
    wanted, content = answers.pop(0)
    assert wanted in question["params"]["message"]
    assert question["params"]["requestedSchema"]["properties"].keys() == content.keys()
    return {"action": "accept", "content": dict(content)}


async def by_a_stateless_client(cast: Cast, tool: str, talk: Talk) -> Heard:
    heard, answers = Heard(), [*talk.answers]
    params: dict[str, Any] = {"name": tool, "arguments": dict(talk.arguments)}
    retry: dict[str, Any] = {}
    while True:
        meta = {"capabilities": dict(FORMS), "progressToken": "p"}
        reply = await ask("acme", "tools/call", params | retry, cast.member.mcp_token, **meta)
        for message in reply.messages:
            heard.hear(message)
        if reply.result["resultType"] == "complete":
            assert answers == [], reply.result
            heard.result = reply.result
            return heard
        ((key, question),) = reply.result["inputRequests"].items()
        retry = {
            "requestState": reply.result["requestState"],
            "inputResponses": {key: answered(question, answers)},
        }


async def by_a_client_of_a_session(cast: Cast, tool: str, talk: Talk) -> Heard:
    heard, answers = Heard(), [*talk.answers]
    session = await begin("acme", cast.member.mcp_token, SESSION, **FORMS)
    async with session.begun(calling(tool, talk.arguments, id=7, progressToken="p")) as posted:
        await posted.event()
        while True:
            # A call that neither asks nor reports anything is answered with JSON.
            streamed = posted.reply.streamed
            message = await posted.message() if streamed else (await posted.done()).last
            heard.hear(message)
            if message.get("method") == "elicitation/create":
                result = answered(message, answers)
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
                assert (await session.send(answer)).status == 202
            elif "method" not in message:
                assert answers == [], message
                heard.result = message["result"]
                return heard


def test_every_template_has_a_test_call() -> None:
    assert {key.split("-")[0] for key in TALKS} == set(templates())


@pytest.mark.parametrize("name", TALKS)
async def test_a_published_template_works_for_clients_of_both_eras(acme, settings, name):
    key, talk = name.split("-")[0], TALKS[name]
    async with published(acme, key, settings) as shop:
        for call_by_client in (by_a_stateless_client, by_a_client_of_a_session):
            shop.forget()
            heard = await call_by_client(acme, templates()[key].name, talk)
            check(heard.result, talk)
            assert heard.progress == list(talk.progress)
            assert (shop.seen, shop.deleted) == (list(talk.seen), list(talk.deleted))


async def test_the_long_task_template_becomes_a_task_for_clients_that_support_tasks(acme, settings):
    talk = TALKS["long_task"]
    async with published(acme, "long_task", settings) as shop:
        follower = Follower(acme.member.mcp_token)
        task = await follower.begin(templates()["long_task"].name, **talk.arguments)
        ended = await task.ended()
        assert ended["status"] == "completed", ended
        check(ended["result"], talk)
        assert shop.seen == list(talk.seen)


@pytest.mark.parametrize(
    ("key", "arguments", "said"),
    [
        ("approval", {"number": 1}, "There is no order 1."),
        ("question", {"number": 5, "result": "solved"}, "404"),
    ],
)
async def test_a_failing_template_call_returns_an_error_to_the_caller(
    acme, settings, key, arguments, said
):
    async with published(acme, key, settings):
        heard = await by_a_stateless_client(acme, templates()[key].name, Talk(arguments, None))
        assert heard.result["isError"] is True
        assert said in heard.result["content"][0]["text"]


def check(result: Mapping[str, Any], talk: Talk) -> None:
    assert not result.get("isError"), result
    if isinstance(talk.result, str):
        assert result["content"][0]["text"] == talk.result
    else:
        assert result["structuredContent"] == talk.result
