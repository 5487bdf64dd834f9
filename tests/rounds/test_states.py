"""Nothing opens a state but the request that it was made for, and every refusal is the same."""

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
from tests.rounds.conftest import module
from tests.rounds.legs import RED, Asker, accept, asked, calling, done, failed, frozen, state_of

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600.0


def _painting(cast: Cast) -> Asker:
    """A call of a tool that acts, so that what was let in would show; each leg has the same id."""
    return calling(cast.owner.mcp_token, "paint", what="it").but(id=1)


async def _asked(asker: Asker) -> str:
    return state_of(await asker.leg())


async def _is_refused(asker: Asker, state: str) -> None:
    """It is refused as what was never a state is, to the byte, and nothing was done."""
    reply, forged = await asker.leg(state, RED), await asker.leg("forged", RED)
    assert frozen(reply) == frozen(forged)
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
async def test_no_bit_of_a_state_can_be_flipped(asking: Cast) -> None:
    """Every bit where states are opened, and one bit of each character over the wire."""
    asker = _painting(asking)
    state = await _asked(asker)
    keys = await in_database(sealer.fetch, asking.acme.id)
    for flipped in _flips(state):
        with pytest.raises(SealError):
            keys.unseal(Purpose.STATE, flipped)
    refused = frozen(await asker.leg("forged", RED))
    flips = islice(_flips(state), 0, None, 9)
    while some := list(islice(flips, 200)):
        replies = await asyncio.gather(*(asker.leg(flipped, RED) for flipped in some))
        assert {frozen(reply) for reply in replies} == {refused}
    assert module("asking").did == []
    assert done(await asker.leg(state, RED)) == "it is red"


@pytest.mark.requirement("mrtr.state-protected")
async def test_a_state_is_not_cut_not_longer_and_written_in_one_way_only(asking: Cast) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    head, _, body = state.rpartition(".")
    changed = [state[:length] for length in (0, 5, 6, 15, 16, 40, len(state) // 2, len(state) - 1)]
    changed += [state + more for more in ("A", "=", "==", ".", " ", "\n", "\0", "AAAA", state)]
    changed += [" " + state, state.upper(), state[::-1], f"{head}.{body[:9]}\n{body[9:]}"]
    changed += [f"{head}.{body[4:]}", f"{head}.{body[-4:]}{body}", f"{head}..{body}", body]
    changed += [f"{head}.{body.replace('-', '+').replace('_', '/')}="]
    for each in changed:
        await _is_refused(asker, each)
    assert done(await asker.leg(state, RED)) == "it is red"


Change = Callable[[RequestState], RequestState]
CHANGES: Mapping[str, Change] = {
    "expired": lambda s: s._replace(issued_at=s.issued_at - HOUR, expires_at=s.issued_at - 61),
    "of-the-future": lambda s: s._replace(issued_at=s.issued_at + HOUR),
    "other-principal": lambda s: s._replace(bound=s.bound._replace(principal="token:other")),
    "other-kind": lambda s: s._replace(bound=s.bound._replace(principal="anonymous:")),
    "other-method": lambda s: s._replace(bound=s.bound._replace(method="prompts/get")),
    "other-target": lambda s: s._replace(bound=s.bound._replace(target="repaint")),
    "other-arguments": lambda s: s._replace(bound=s.bound._replace(arguments="x")),
}


@pytest.mark.requirement("mrtr.state-bound")
@pytest.mark.parametrize("name", CHANGES)
async def test_a_state_that_was_sealed_for_something_else_is_refused(
    asking: Cast, name: str
) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    await _is_refused(asker, await forge.sealed(CHANGES[name](state)))


async def test_the_skew_of_a_minute_is_allowed_and_no_more(asking: Cast) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    just = state._replace(issued_at=state.issued_at - HOUR, expires_at=state.issued_at - 30)
    assert done(await asker.leg(await forge.sealed(just), RED)) == "it is red"


async def test_a_state_lives_as_long_as_its_author_said(asking: Cast) -> None:
    forge, token = Forge(asking), asking.owner.mcp_token
    soon = await forge.opened(await _asked(calling(token, "soon")))
    usual = await forge.opened(await _asked(calling(token, "paint", what="it")))
    assert soon.expires_at - soon.issued_at == 60
    assert usual.expires_at - usual.issued_at == 1800


@pytest.mark.parametrize("purpose", [each for each in Purpose if each is not Purpose.STATE])
async def test_a_token_of_another_purpose_is_no_state(asking: Cast, purpose: Purpose) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    await _is_refused(asker, await forge.sealed(state, purpose=purpose))


async def test_a_key_of_ones_own_seals_nothing(asking: Cast) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    own = secrets.token_bytes(32)
    active = await forge.active()
    for key in (Key(active.id, own), Key("deadbeef", own), Key("0", active.secret)):
        await _is_refused(asker, await forge.sealed(state, key=key))


async def test_a_salt_or_a_tenant_of_ones_own_seals_nothing(asking: Cast) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    await _is_refused(asker, await forge.sealed(state, salt=secrets.token_bytes(32)))
    await _is_refused(asker, await forge.sealed(state, tenant=asking.globex.id))


@pytest.mark.requirement("mrtr.state-bound")
async def test_another_tenant_principal_or_token_of_the_same_person_does_not_open_it(
    asking: Cast,
) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    wanted = TokenRequest("another", (LIST_TOOLS, CALL_TOOLS))
    second = await in_database(
        lambda: issue(asking.acme.id, asking.owner.user, wanted, actor=ACTOR).plaintext
    )
    for other in (
        asker.but(token=asking.stranger.mcp_token, tenant="globex"),
        asker.but(token=None, tenant="commons"),
        asker.but(token=asking.member.mcp_token),
        asker.but(token=asking.auditor.mcp_token),
        asker.but(token=second),
    ):
        await _is_refused(other, state)
    assert done(await asker.leg(state, RED)) == "it is red"


@pytest.mark.requirement("mrtr.state-bound")
async def test_another_tool_method_or_primitive_does_not_open_it(asking: Cast) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    for name in ("repaint", "paint_slowly", "survey"):
        params = {"name": name, "arguments": {"what": "it"} if name != "survey" else {}}
        await _is_refused(asker.but(params=params), state)
    letter = {"name": "letter", "arguments": {"to": "Ada"}}
    await _is_refused(asker.but(params=letter, method="prompts/get"), state)
    page = {"uri": "asking://page"}
    await _is_refused(asker.but(params=page, method="resources/read"), state)


async def test_a_state_of_one_page_does_not_open_another(asking: Cast) -> None:
    monday, tuesday = (
        Asker(asking.owner.mcp_token, {"uri": f"asking://days/{day}"}, method="resources/read").but(
            id=1
        )
        for day in ("monday", "tuesday")
    )
    state = await _asked(monday)
    await _is_refused(tuesday, state)


MOVED = {"what": "it", "where": {"x": 1, "y": [1, 2]}, "often": 1}


@pytest.mark.requirement("mrtr.state-bound")
@pytest.mark.parametrize(
    "other",
    [
        {**MOVED, "what": "It"},
        {**MOVED, "what": "it "},
        {**MOVED, "often": 2},
        {**MOVED, "where": {"x": 1, "y": [2, 1]}},
        {**MOVED, "where": {"x": 1.0, "y": [1, 2]}},
        {**MOVED, "where": {"x": "1", "y": [1, 2]}},
        {**MOVED, "where": {"x": True, "y": [1, 2]}},
        {**MOVED, "where": {"x": None, "y": [1, 2]}},
        {**MOVED, "where": {"x": 1, "y": [1, 2], "z": None}},
        {"what": "it", "where": {"x": 1, "y": [1, 2]}},
    ],
)
async def test_another_value_of_an_argument_does_not_open_it(
    asking: Cast, other: dict[str, Any]
) -> None:
    asker = calling(asking.owner.mcp_token, "move", **MOVED).but(id=1)
    state = await _asked(asker)
    await _is_refused(asker.but(params={"name": "move", "arguments": other}), state)


async def test_the_order_of_arguments_and_the_label_of_the_request_do_not_matter(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "move", **MOVED)
    turned = {"often": 1, "where": {"y": [1, 2], "x": 1}, "what": "it"}
    again = asker.but(params={"name": "move", "arguments": turned, "extra": 1})
    reply = await again.leg(await _asked(asker), {"sure": accept(size=1)})
    assert done(reply).startswith("it moved 1 times")
    bare = calling(asking.owner.mcp_token, "survey")
    absent = bare.but(params={"name": "survey"})
    assert done(await absent.leg(await _asked(bare), RED)) == '["accept", {"colour": "red"}]'


async def test_every_refusal_is_recorded_with_its_true_reason(asking: Cast) -> None:
    asker, forge = _painting(asking), Forge(asking)
    state = await forge.opened(await _asked(asker))
    for change in CHANGES.values():
        frozen(await asker.leg(await forge.sealed(change(state)), RED))
    refused = Entry.objects.filter(action="state.refused")
    reasons = await in_database(lambda: [entry.reason for entry in refused])
    assert len(reasons) == len(CHANGES)
    assert all(reasons)
    assert len(set(reasons)) >= 5


# The same state, at once.


@pytest.mark.requirement("mrtr.claimed-once")
async def test_the_same_answers_again_get_the_same_outcome_and_nothing_is_done_twice(
    asking: Cast,
) -> None:
    asker = calling(asking.owner.mcp_token, "paint_slowly", what="it").but(id=1)
    state = await _asked(asker)
    first = asyncio.create_task(asker.leg(state, RED))
    await module("asking").running.wait()
    again = [asyncio.create_task(asker.leg(state, RED)) for _ in range(3)]
    await asyncio.sleep(0)
    module("asking").release.set()
    replies = [await each for each in (first, *again)]
    assert {done(reply) for reply in replies} == {"it is red"}
    assert module("asking").did == ["it red"]
    assert done(await asker.leg(state, RED)) == "it is red"
    assert module("asking").did == ["it red"]


@pytest.mark.requirement("mrtr.claimed-once")
async def test_other_answers_to_what_is_being_done_or_was_done_are_refused(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "paint_slowly", what="it").but(id=1)
    state = await _asked(asker)
    first = asyncio.create_task(asker.leg(state, RED))
    await module("asking").running.wait()
    blue = {"colour": accept(colour="blue")}
    forged = frozen(await asker.leg("forged", blue))
    assert frozen(await asker.leg(state, blue)) == forged
    module("asking").release.set()
    assert done(await first) == "it is red"
    assert frozen(await asker.leg(state, blue)) == forged
    assert module("asking").did == ["it red"]


async def test_many_at_once_with_different_answers_have_one_winner(asking: Cast) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    colours = ["red", "green", "blue"] * 4
    replies = await asyncio.gather(
        *(asker.leg(state, {"colour": accept(colour=colour)}) for colour in colours)
    )
    [did] = module("asking").did
    won = did.split()[1]
    for colour, reply in zip(colours, replies, strict=True):
        if colour == won:
            assert done(reply) == f"it is {won}"
        else:
            frozen(reply)


async def test_what_may_be_done_any_number_of_times_is_done_again(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "repaint", what="it")
    state = await _asked(asker)
    assert done(await asker.leg(state, RED)) == "it is red"
    assert done(await asker.leg(state, {"colour": accept(colour="blue")})) == "it is blue"
    assert module("asking").did == ["it red", "it blue"]


async def test_a_state_of_nobody_in_particular_is_used_once(asking: Cast) -> None:
    asker = Asker(None, {"name": "repaint", "arguments": {"what": "it"}}, "commons").but(id=1)
    state = await _asked(asker)
    assert done(await asker.leg(state, RED)) == "it is red"
    assert done(await asker.leg(state, RED)) == "it is red"
    frozen(await asker.leg(state, {"colour": accept(colour="blue")}))
    assert module("asking").did == ["it red"]


async def test_nobody_in_particular_is_not_sent_to_a_page(asking: Cast) -> None:
    reply = await Asker(None, {"name": "consent"}, "commons").leg()
    assert "credential" in failed(reply)


async def test_an_anonymous_state_lives_ten_minutes_at_most(asking: Cast) -> None:
    state = await _asked(Asker(None, {"name": "paint", "arguments": {"what": "it"}}, "commons"))
    payload = await in_database(sealer.unseal, Purpose.STATE, asking.commons.id, state)
    read = request_state.read(payload)
    assert read.expires_at - read.issued_at == 600


async def test_two_calls_side_by_side_have_each_its_own_answer(asking: Cast) -> None:
    token = asking.owner.mcp_token
    askers = [calling(token, "paint", what=f"thing {n}") for n in range(30)]
    firsts = await asyncio.gather(*(asker.leg() for asker in askers))
    colours = [("red", "green", "blue")[n % 3] for n in range(30)]
    replies = await asyncio.gather(
        *(
            asker.leg(state_of(first), {"colour": accept(colour=colour)})
            for asker, first, colour in zip(askers, firsts, colours, strict=True)
        )
    )
    assert [done(reply) for reply in replies] == [
        f"thing {n} is {colour}" for n, colour in enumerate(colours)
    ]
    assert all(list(asked(first)) == ["colour"] for first in firsts)
