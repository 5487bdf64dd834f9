"""A state is valid only for the request for which it was made, and every refusal is the same."""

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from mcphost.audit.models import Entry
from mcphost.identity.services import TokenRequest, issue
from mcphost.sealing import tokens
from mcphost.sealing.tokens import Binding, Key, Purpose, SealError
from mcphost.serving import request_state
from mcphost.serving.database import in_database
from mcphost.serving.request_state import RequestState
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from mcphost.vault import sealer
from tests.cast import ACTOR, Cast
from tests.mcp import Reply
from tests.rounds.client_steps import BLUE, RED, Asker, accept, calling, done, frozen, state_of
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600.0


def _painting(cast: Cast) -> Asker:
    """A call of a tool that acts, so that what was let in would show; each leg has the same id."""
    return calling(cast.owner.mcp_token, "paint", what="it").but(id=1)


async def _asked(asker: Asker) -> str:
    return state_of(await asker.leg())


async def _are_refused(asker: Asker, *states: str) -> None:
    """They are refused as what was never a state is, to the byte, and nothing was done."""
    forged = await asker.leg("forged", RED)
    for state in states:
        reply = await asker.leg(state, RED)
        assert frozen(reply) == frozen(forged), state
        assert _seen(reply) == _seen(forged)
    assert module("asking").did == []


def _seen(reply: Reply) -> tuple[int, Mapping[str, str]]:
    own = ("date", "traceparent")
    return reply.status, {k: v for k, v in reply.headers.items() if k not in own}


class Forge:
    """Makes states as only somebody with the keys can."""

    def __init__(self, cast: Cast) -> None:
        self._tenant = cast.acme.id

    async def opened(self, token: str) -> RequestState:
        payload = await in_database(sealer.unseal, Purpose.STATE, self._tenant, token)
        return request_state.read(payload)

    async def sealed(self, state: RequestState, **other: Any) -> str:
        """Sealed again, with another purpose, tenant, salt or key if given."""
        at_hand = await in_database(sealer.fetch, self._tenant)
        purpose, tenant = other.get("purpose", Purpose.STATE), other.get("tenant", self._tenant)
        binding = Binding(purpose, tenant, other.get("salt", at_hand.salt))
        key = other.get("key", at_hand.ring.active)
        payload = request_state.write(state)
        return tokens.seal(payload, binding, key, secrets.token_bytes(24), limit=100_000)

    async def active(self) -> Key:
        return (await in_database(sealer.fetch, self._tenant)).ring.active


def _flips(token: str) -> Iterator[str]:
    """The token with each of its bits flipped, one at a time."""
    for place, character in enumerate(token):
        for bit in range(8):
            yield token[:place] + chr(ord(character) ^ 1 << bit) + token[place + 1 :]


@pytest.mark.requirement("mrtr.state-protected")
async def test_a_state_with_any_flipped_bit_is_refused(asking: Cast) -> None:
    """Every bit where states are opened, and some over the wire."""
    asker = _painting(asking)
    state = await _asked(asker)
    keys = await in_database(sealer.fetch, asking.acme.id)
    for flipped in _flips(state):
        with pytest.raises(SealError):
            keys.unseal(Purpose.STATE, flipped)
    await _are_refused(asker, *islice(_flips(state), 0, None, 113))
    assert done(await asker.leg(state, RED)) == "it is red"


@pytest.mark.requirement("mrtr.state-protected")
async def test_a_state_that_is_cut_extended_or_written_differently_is_refused(asking: Cast) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    head, _, body = state.rpartition(".")
    changed = [state[:length] for length in (0, 5, 6, 15, 16, 40, len(state) // 2, len(state) - 1)]
    changed += [state + more for more in ("A", "=", "==", ".", " ", "\n", "\0", "AAAA", state)]
    changed += [" " + state, state.upper(), state[::-1], f"{head}.{body[:9]}\n{body[9:]}"]
    changed += [f"{head}.{body[4:]}", f"{head}.{body[-4:]}{body}", f"{head}..{body}", body]
    changed += [f"{head}.{body.replace('-', '+').replace('_', '/')}="]
    await _are_refused(asker, *changed)
    assert done(await asker.leg(state, RED)) == "it is red"


Change = Callable[[RequestState], RequestState]
CHANGES: Mapping[str, Change] = {
    "expired": lambda s: s._replace(issued_at=s.issued_at - HOUR, expires_at=s.issued_at - 61),
    "issued in the future": lambda s: s._replace(issued_at=s.issued_at + HOUR),
    "of another principal": lambda s: s._replace(bound=s.bound._replace(principal="token:other")),
    "of another method": lambda s: s._replace(bound=s.bound._replace(method="prompts/get")),
    "of another target": lambda s: s._replace(bound=s.bound._replace(target="repaint")),
    "the arguments differ": lambda s: s._replace(bound=s.bound._replace(arguments="x")),
}
"""Changes of what is sealed, by the reason that is recorded for the refusal."""


@pytest.mark.requirement("mrtr.state-bound")
async def test_a_state_sealed_for_another_request_is_refused_and_the_refusal_is_recorded(
    asking: Cast,
) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    await _are_refused(asker, *[await forge.sealed(each(state)) for each in CHANGES.values()])
    refused = Entry.objects.filter(action="state.refused").order_by("id")
    reasons = await in_database(lambda: [entry.reason for entry in refused])
    assert len(reasons) == 1 + len(CHANGES)
    assert all(word in reason for word, reason in zip(CHANGES, reasons[1:], strict=True)), reasons
    just = state._replace(issued_at=state.issued_at - HOUR, expires_at=state.issued_at - 30)
    assert done(await asker.leg(await forge.sealed(just), RED)) == "it is red", "a minute's skew"


async def test_a_state_sealed_with_another_purpose_key_salt_or_tenant_is_refused(
    asking: Cast,
) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    own, active = secrets.token_bytes(32), await forge.active()
    others: list[dict[str, Any]] = [
        *({"purpose": each} for each in Purpose if each is not Purpose.STATE),
        *({"key": key} for key in (Key(active.id, own), Key("dead", own), Key("0", active.secret))),
        {"salt": secrets.token_bytes(32)},
        {"tenant": asking.globex.id},
    ]
    await _are_refused(asker, *[await forge.sealed(state, **other) for other in others])


@pytest.mark.requirement("mrtr.state-bound")
async def test_a_state_is_refused_for_another_tenant_principal_token_tool_or_primitive(
    asking: Cast,
) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    wanted = TokenRequest("another", (LIST_TOOLS, CALL_TOOLS))
    second = await in_database(
        lambda: issue(asking.acme.id, asking.owner.user, wanted, actor=ACTOR).plaintext
    )
    letter = {"name": "letter", "arguments": {"to": "Ada"}}
    for other in (
        asker.but(token=asking.stranger.mcp_token, tenant="globex"),
        asker.but(token=None, tenant="commons"),
        asker.but(token=asking.member.mcp_token),
        asker.but(token=asking.auditor.mcp_token),
        asker.but(token=second),
        asker.but(params={"name": "repaint", "arguments": {"what": "it"}}),
        asker.but(params={"name": "paint_slowly", "arguments": {"what": "it"}}),
        asker.but(params={"name": "survey", "arguments": {}}),
        asker.but(params=letter, method="prompts/get"),
        asker.but(params={"uri": "asking://page"}, method="resources/read"),
    ):
        await _are_refused(other, state)
    assert done(await asker.leg(state, RED)) == "it is red"
    monday, tuesday = (
        Asker(asker.token, {"uri": f"asking://days/{day}"}, method="resources/read").but(id=1)
        for day in ("monday", "tuesday")
    )
    module("asking").did.clear()
    await _are_refused(tuesday, await _asked(monday))


MOVED = {"what": "it", "where": {"x": 1, "y": [1, 2]}, "often": 1}
OTHER_PLACES: tuple[dict[str, Any], ...] = (
    {"x": 1, "y": [2, 1]},
    {"x": 1.0, "y": [1, 2]},
    {"x": "1", "y": [1, 2]},
    {"x": True, "y": [1, 2]},
    {"x": None, "y": [1, 2]},
    {"x": 1, "y": [1, 2], "z": None},
)


@pytest.mark.requirement("mrtr.state-bound")
async def test_a_state_is_refused_for_other_argument_values_but_not_for_another_key_order(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "move", **MOVED).but(id=1)
    state = await _asked(asker)
    changed = ({"what": "It"}, {"what": "it "}, {"often": 2}, *({"where": w} for w in OTHER_PLACES))
    without = {name: value for name, value in MOVED.items() if name != "often"}
    for other in (*({**MOVED, **each} for each in changed), without):
        await _are_refused(asker.but(params={"name": "move", "arguments": other}), state)
    turned = {"often": 1, "where": {"y": [1, 2], "x": 1}, "what": "it"}
    again = asker.but(params={"name": "move", "arguments": turned, "extra": 1}, id=2)
    assert done(await again.leg(state, {"sure": accept(size=1)})).startswith("it moved 1 times")
    bare = calling(asking.owner.mcp_token, "survey")
    absent = bare.but(params={"name": "survey"})
    assert done(await absent.leg(await _asked(bare), RED)) == '["accept", {"colour": "red"}]'


# The same state, at once.


@pytest.mark.requirement("mrtr.claimed-once")
async def test_equal_responses_get_one_outcome_and_different_ones_are_refused(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "paint_slowly", what="it").but(id=1)
    state = await _asked(asker)
    first = asyncio.create_task(asker.leg(state, RED))
    async with asyncio.timeout(10):
        await module("asking").running.wait()
    forged = frozen(await asker.leg("forged", BLUE))
    assert frozen(await asker.leg(state, BLUE)) == forged
    again = [asyncio.create_task(asker.leg(state, RED)) for _ in range(3)]
    await asyncio.sleep(0)
    module("asking").release.set()
    assert {done(await each) for each in (first, *again)} == {"it is red"}
    assert done(await asker.leg(state, RED)) == "it is red"
    assert frozen(await asker.leg(state, BLUE)) == forged
    assert module("asking").did == ["it red"]


async def test_repeatable_tools_run_again_for_other_responses_except_for_anonymous_callers(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "repaint", what="it")
    state = await _asked(asker)
    assert done(await asker.leg(state, RED)) == "it is red"
    assert done(await asker.leg(state, BLUE)) == "it is blue"
    assert module("asking").did == ["it red", "it blue"]
    nobody = Asker(None, {"name": "repaint", "arguments": {"what": "it"}}, "commons").but(id=1)
    state = await _asked(nobody)
    for _ in range(2):
        assert done(await nobody.leg(state, RED)) == "it is red"
    frozen(await nobody.leg(state, BLUE))
    assert module("asking").did == ["it red", "it blue", "it red"]
