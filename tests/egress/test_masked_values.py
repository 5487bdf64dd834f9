"""Tests of where secrets are masked: on the event loop only if it is little work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from mcphost.egress import masking
from mcphost.egress.client import Egress, no_secrets
from mcphost.egress.errors import EgressError, EgressResponseError
from mcphost.egress.masked_values import Hidden
from mcphost.egress.masking import MASKED
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from tests.egress.conftest import (
    Arrived,
    Handler,
    Service,
    answer,
    local,
    opened,
    running,
    url,
    write,
)
from tests.egress.exchanges import exchange, hiding

VALUE = "a-secret-value"
Sending = asyncio.Task[ReceivedResponse]


class Watched(str):
    """A value that notes which threads prepare its forms."""

    __slots__ = ("threads",)

    def __new__(cls, value: str) -> "Watched":
        watched = super().__new__(cls, value)
        watched.threads = set()
        return watched

    def encode(self, *encoding: str) -> bytes:
        self.threads.add(threading.current_thread())
        return super().encode(*encoding)


def large(number: int) -> list[str]:
    """Return as many values of the largest size, all escapes, which take longest to prepare."""
    return [f"%{65 + each % 26:02x}%{65 + each // 26:02x}" * 682 for each in range(number)]


class Held(Watched):
    """A value whose preparation, in a thread, waits until it is released."""

    __slots__ = ("begun", "released")

    def __new__(cls, value: str) -> "Held":
        held = super().__new__(cls, value)
        held.begun, held.released = threading.Event(), threading.Event()
        return held

    def encode(self, *encoding: str) -> bytes:
        self.begun.set()
        self.released.wait()
        return super().encode(*encoding)


def test_a_value_that_is_added_later_is_masked_too() -> None:
    hidden = Hidden()
    hidden.add([VALUE])
    assert hidden.mask().bytes(VALUE.encode()) == MASKED
    hidden.add(["another-value"])
    assert hidden.mask().bytes(f"{VALUE} another-value".encode()) == MASKED + b" " + MASKED


async def received(handler: Handler, *values: str) -> ReceivedResponse:
    return (await exchange(handler, hidden=hiding(*values))).response


async def test_one_small_secret_is_masked_on_the_event_loop():
    watched = Watched(VALUE)
    response = await received(answer(200, VALUE.encode(), X_Echo=VALUE), watched)
    assert (response.body, response.header("X-Echo")) == (b"[secret]", "[secret]")
    assert watched.threads == {threading.current_thread()}


async def test_many_large_secrets_are_masked_off_the_event_loop():
    values = large(99)
    watched = Watched(VALUE)
    body = f"<{VALUE}><{values[0]}>{values[98]}".encode()
    response = await received(answer(200, body, X_Echo=values[50]), watched, *values)
    assert response.body == b"<[secret]><[secret]>[secret]"
    assert response.header("X-Echo") == "[secret]"
    assert watched.threads
    assert threading.current_thread() not in watched.threads


@pytest.mark.parametrize(("headers", "body", "others"), [(250, 0, 0), (0, 17 * 1024, 0)])
async def test_many_headers_or_secrets_are_searched_off_the_event_loop(headers, body, others):
    watched = Watched(VALUE)
    heads = {f"X_{number}": VALUE for number in range(headers)}
    values = [f"another-secret-{number}" for number in range(others)]
    response = await received(answer(200, b"x" * body, **heads), watched, *values)
    assert [response.header(f"X-{number}") for number in range(headers)] == ["[secret]"] * headers
    assert watched.threads
    assert threading.current_thread() not in watched.threads


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://LOWER-CASE-VALUE.example/", "[secret]"),
        ("http://other.example/lower-case-value", "redirects with a secret"),
    ],
)
async def test_an_error_is_masked_off_the_event_loop_if_secrets_are_large(location, words):
    watched = Watched("lower-case-value")
    hidden = hiding(watched, *large(2))
    error = (await exchange(answer(302, b"", Location=location), hidden=hidden)).outcome
    assert isinstance(error, EgressError)
    assert words in str(error) and "lower-case-value" not in str(error)
    assert watched.threads
    assert threading.current_thread() not in watched.threads


async def test_a_secret_added_before_a_redirect_is_followed_is_masked():
    """The mask of the first response does not know what is hidden since."""
    known = [[VALUE], [VALUE, "a-later-secret"], [VALUE, "a-later-secret"]]

    async def values_to_mask() -> list[str]:
        return known.pop(0)

    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(
            writer,
            302 if len(known) == 2 else 200,
            f"{VALUE} a-later-secret".encode(),
            Location="/next",
        )

    response = (await exchange(handler, hidden=values_to_mask)).response
    assert response.body == b"[secret] [secret]"


BODY = f"<{VALUE}>".encode() + b"x" * 100_000


@asynccontextmanager
async def holding(service: Service, egress: Egress) -> AsyncIterator[Callable[..., Sending]]:
    """One tenant has eight calls, the first of which is being masked until the end of the block.

    Yields a function that begins a request: of a tenant, to a service that may have values.
    """
    async with asyncio.TaskGroup() as group:

        def send(tenant: str, *values: str) -> Sending:
            policy = replace(local(service), tenant=tenant)
            request = OutgoingRequest(url(service))
            return group.create_task(egress.send(request, policy, no_secrets, hiding(*values)))

        held = Held(large(1)[0])
        try:
            calls = [send("hostile", VALUE, held) for _ in range(8)]
            await asyncio.to_thread(held.begun.wait)
            yield send
        finally:
            held.released.set()
    assert {len(call.result().body) for call in calls} == {len(BODY) - len(VALUE) + 8}


async def test_masking_for_one_tenant_does_not_delay_other_tenants():
    async with (
        running(answer(200, BODY)) as service,
        opened(service) as egress,
        holding(service, egress) as send,
    ):
        assert (await send("without secrets")).body == BODY
        assert (await send("with secrets", VALUE)).body == BODY.replace(VALUE.encode(), MASKED)


async def test_masking_for_a_cancelled_call_still_occupies_the_slot_of_its_tenant():
    """A thread cannot be stopped: calls that time out would take all of them."""
    held, watched = Held(large(1)[0]), Watched(VALUE)
    async with running(answer(200, BODY)) as service, opened(service) as egress:
        request, policy = OutgoingRequest(url(service)), local(service)
        other = replace(policy, tenant="other")
        first = asyncio.create_task(egress.send(request, policy, no_secrets, hiding(held)))
        await asyncio.to_thread(held.begun.wait)
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(egress.send(request, policy, no_secrets, hiding(watched)))
        try:
            for _ in range(3):
                await egress.send(request, other, no_secrets, hiding(VALUE))
            assert not watched.threads
        finally:
            held.released.set()
        assert (await second).body == BODY.replace(VALUE.encode(), MASKED)


async def test_a_response_with_too_many_escapes_to_check_is_refused(monkeypatch):
    monkeypatch.setattr(masking, "MAX_ESCAPES", 100)
    percent, nested = b"%61-secret-value", b"\\u002561-secret-value"
    assert (await received(answer(200, percent + b"%41" * 99), VALUE)).body.startswith(MASKED)
    assert (await received(answer(200, nested + b"%41" * 49), VALUE)).body.startswith(MASKED)
    for body in (percent + b"%41" * 100, nested + b"%41" * 99):
        assert (await received(answer(200, body))).body == body
        sent = await exchange(answer(200, body), hidden=hiding(VALUE))
        sent.refused(EgressResponseError, "more than 100 escapes")
