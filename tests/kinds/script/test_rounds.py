"""Scripts that request input: where they pause, how they resume, and how they are replayed."""

import os
import signal
from typing import Any

import pytest

from mcphost.egress.errors import EgressAddressError
from mcphost.runtime.outcomes import FailureKind, InputRequired, Yielded
from mcphost.runtime.ports import RoundLimits
from mcphost.sandbox.pool import Sandbox
from tests.kinds.rounds_with_client import CANCEL, DECLINE, accept, asking_call
from tests.kinds.script.script_calls import DrivenScript, responded
from tests.sandbox.processes import children_of

LOOP = """
def order(items: list[str]) -> dict:
    basket = []
    for number, item in enumerate(items):
        got = http.post("https://shop.example/" + item, json={"number": number})
        answer = elicit(f"count-{number}", f"How many of {item}?", {"count": int})
        basket.append([item, answer["count"], got.json()["number"]])
    return {"basket": basket}
"""
TWICE = """
def greet() -> str:
    first = elicit("first", "First name?", {"name": str})["name"]
    last = elicit("last", f"{first} who?", {"name": str})["name"]
    return f"{first} {last}"
"""
BESIDE = """
import asyncio

async def greet() -> list[str]:
    async def one(key):
        return (await elicit(key, f"{key} name?", {"name": str}))["name"]
    page, first, last = await asyncio.gather(http.get("https://x.example/"), one("first"), one("last"))
    sure = await elicit("sure", f"Is it {first} {last}?", {"sure": bool})
    return [first, last, str(page.status), str(sure["sure"])]
"""


PAGE = """
def pay(amount: int) -> str:
    try:
        elicit_url("pay", "Pay here.", f"https://pay.example.com/{amount}")
    except RuntimeError as error:
        return f"not paid: {error}"
    return "paid"
"""


async def test_a_script_requests_the_user_to_open_a_page(sandbox: Sandbox):
    call = asking_call({"amount": 5})
    driven = DrivenScript(PAGE, sandbox, call)
    outcome = await driven.advance()
    assert isinstance(outcome, InputRequired)
    (asked,) = outcome.requests
    assert asked.params == {
        "mode": "url",
        "message": "Pay here.",
        "url": "https://pay.example.com/5",
    }
    assert await driven.completes(pay={"action": "accept"}) == "paid"


@pytest.mark.parametrize("answer", [DECLINE, CANCEL], ids=["decline", "cancel"])
async def test_a_script_gets_an_error_if_the_user_did_not_open_the_page(sandbox, answer):
    driven = DrivenScript(PAGE, sandbox, asking_call({"amount": 5}))
    assert await driven.asks() == ["pay"]
    assert (await driven.completes(pay=answer)).startswith("not paid: ")
    whole = DrivenScript("def f(): elicit_url('a', 'A?', 'https://a.example/')", sandbox)
    assert await whole.asks() == ["a"]
    assert await whole.refuses(a=answer)


@pytest.mark.parametrize("url", ["http://pay.example.com/", "https://x.example/?token=1"])
async def test_a_forbidden_page_is_not_requested(sandbox: Sandbox, url: str):
    source = f"""
    def f() -> str:
        try:
            elicit_url("a", "A?", "{url}")
        except RuntimeError as error:
            return str(error)
        return "asked"
    """
    assert "cannot be asked" in await DrivenScript(source, sandbox).completes()


async def test_a_script_completes(sandbox: Sandbox):
    source = "def add(a: int = 1, b: int = 1) -> dict:\n return {'sum': a + b}"
    assert await DrivenScript(source, sandbox, asking_call({"b": 2})).completes() == {"sum": 3}


POINT = """from dataclasses import dataclass
@dataclass
class Point:
    x: int
    y: int
"""


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("'text'", "text"),
        ("[1, (2, {3})]", [1, [2, [3]]]),
        ("Point(1, 2)", {"x": 1, "y": 2}),
    ],
)
async def test_a_result_becomes_json(sandbox: Sandbox, value: str, given: Any):
    assert await DrivenScript(f"{POINT}def f():\n return {value}", sandbox).completes() == given


async def test_code_before_the_input_request_does_not_run_again_in_a_resumed_script(
    sandbox: Sandbox,
):
    source = """
    def f() -> str:
        print("before")
        progress(1)
        elicit("a", "A?", {"name": str})
        print("after")
        return "done"
    """
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    assert await driven.completes(a=accept(name="x")) == "done"
    assert [text for _, text, _ in driven.notes.logged] == ["before\n", "after\n"]


@pytest.mark.parametrize("lost", [False, True])
async def test_concurrent_input_requests_are_sent_in_one_round(sandbox: Sandbox, lost: bool):
    driven = DrivenScript(BESIDE, sandbox)
    assert sorted(await driven.asks()) == ["first", "last"]
    assert driven.journal.paused is not None
    if lost:
        driven.lose_the_paused_script()
    answers = {"first": accept(name="Ada"), "last": accept(name="Lovelace")}
    assert await driven.asks(**answers) == ["sure"]
    assert await driven.completes(sure=accept(sure=True)) == ["Ada", "Lovelace", "200", "True"]
    assert len(driven.http.requests) == 1


async def test_each_round_may_run_in_another_process():
    driven = None
    answers: list[dict[str, Any]] = [{}, {"first": accept(name="Ada")}, {"last": accept(name="L")}]
    for number, given in enumerate(answers):
        sandbox = Sandbox(1, wait_seconds=30)
        driven = driven or DrivenScript(TWICE, sandbox)
        driven.sandbox = sandbox
        if number < 2:
            await driven.asks(**given)
            assert driven.journal.paused is not None
        else:
            assert await driven.completes(**given) == "Ada L"
        sandbox.close()


@pytest.mark.parametrize("rounds", [(), (0,), (1,), (0, 1)])
async def test_a_script_that_asks_in_a_loop_is_resumed_or_replayed(sandbox, rounds):
    """A paused script that is lost (too large, or of another sandbox) is replayed."""
    driven = DrivenScript(LOOP, sandbox, asking_call({"items": ["ink", "paper"]}))
    assert await driven.asks() == ["count-0"]
    if 0 in rounds:
        driven.lose_the_paused_script()
    assert await driven.asks(**{"count-0": accept(count=2)}) == ["count-1"]
    if 1 in rounds:
        driven.lose_the_paused_script()
    done = await driven.completes(**{"count-1": accept(count=5)})
    assert done == {"basket": [["ink", 2, 1], ["paper", 5, 2]]}
    assert len(driven.http.requests) == 2


async def test_a_script_changed_between_rounds_is_replayed(sandbox: Sandbox):
    driven = DrivenScript(TWICE, sandbox)
    await driven.asks()
    driven.change(TWICE.replace('f"{first} {last}"', 'f"{last}, {first}"'), "2")
    assert await driven.asks(first=accept(name="Ada")) == ["last"]
    assert await driven.completes(last=accept(name="Lovelace")) == "Lovelace, Ada"


@pytest.mark.parametrize("image", ["AAAA", "not base64!"])
async def test_a_paused_script_that_cannot_be_loaded_is_replayed(sandbox: Sandbox, image: str):
    driven = DrivenScript(TWICE, sandbox)
    await driven.asks()
    assert driven.journal.paused is not None
    driven.journal.paused["image"] = image  # type: ignore[index]
    assert await driven.asks(first=accept(name="Ada")) == ["last"]
    assert await driven.completes(last=accept(name="Lovelace")) == "Ada Lovelace"


async def test_a_script_too_large_to_be_stored_is_replayed(sandbox: Sandbox):
    source = """
    import random
    def f() -> dict:
        junk = [random.random() for _ in range(20_000)]
        elicit("a", "A?", {"name": str})
        return {"sum": sum(junk)}
    """
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    assert driven.journal.paused is None
    done = await driven.completes(a=accept(name="x"))
    again = await driven.completes()
    assert done == again and 0 < done["sum"] < 20_000


async def test_time_and_randomness_are_the_same_in_a_replay(sandbox: Sandbox):
    source = """
    import random, time
    from datetime import datetime, timezone
    def f() -> list:
        seen = [random.random(), time.time(), str(datetime.now(timezone.utc))]
        elicit("a", f"{seen}?", {"name": str})
        return seen
    """
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    driven.lose_the_paused_script()
    assert len(await driven.completes(a=accept(name="x"))) == 3


async def test_a_declined_input_request_ends_the_call_with_an_error_for_the_caller(
    sandbox: Sandbox,
):
    for answer, text in ((DECLINE, "declined"), (CANCEL, "dismissed")):
        driven = DrivenScript(TWICE, sandbox)
        await driven.asks()
        assert text in await driven.refuses(first=answer)


async def test_a_script_can_catch_a_declined_input_request_even_in_a_later_round(sandbox: Sandbox):
    source = """
    def f() -> str:
        try:
            elicit("a", "A?", {"name": str})
        except RuntimeError as error:
            name = elicit("b", "B?", {"name": str})["name"]
            if name == "raise":
                raise error
            return name
        return "a"
    """
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    assert await driven.asks(a=DECLINE) == ["b"]
    assert await driven.completes(b=accept(name="other")) == "other"
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    await driven.asks(a=DECLINE)
    assert "declined" in await driven.refuses(b=accept(name="raise"))


async def test_an_invalid_response_is_requested_again(sandbox: Sandbox):
    driven = DrivenScript(TWICE, sandbox)
    await driven.asks()
    outcome = await driven.advance(first=accept(name=7))
    assert isinstance(outcome, InputRequired)
    assert outcome.invalid.keys() == {"first"}
    assert await driven.asks(first=accept(name="Ada")) == ["last"]


async def test_a_script_can_request_sampling(sandbox: Sandbox):
    source = """
    def f() -> str:
        return sample("s", "A haiku?", max_tokens=50, system="Be brief.")
    """
    driven = DrivenScript(source, sandbox)
    assert await driven.asks() == ["s"]
    content = {"type": "text", "text": "An old silent pond"}
    said = {"role": "assistant", "content": content, "model": "m"}
    assert await driven.completes(s=said) == "An old silent pond"


async def test_a_client_without_the_capability_gets_the_missing_capability(sandbox: Sandbox):
    driven = DrivenScript(TWICE, sandbox, asking_call(roots={}))
    failure = await driven.fails()
    assert failure.kind is FailureKind.CAPABILITY_MISSING
    assert failure.required == {"elicitation": {"form": {}}}


async def test_fail_ends_the_call_with_a_text_for_the_caller(sandbox: Sandbox):
    source = """
    def f() -> str:
        try:
            fail("There is no such order.")
        except BaseException:
            return "caught"
    """
    assert await DrivenScript(source, sandbox).refuses() == "There is no such order."


async def test_an_exception_of_the_script_appears_only_in_the_log(sandbox: Sandbox):
    failure = await DrivenScript("def f() -> str:\n raise ValueError('inner')", sandbox).fails()
    assert failure.kind is FailureKind.CRASHED
    assert "inner" not in failure.message
    assert "line 2 in f" in failure.detail and "inner" in failure.detail


@pytest.mark.parametrize(
    "asked",
    [
        'elicit("not a key", "A?", {"name": str})',
        'elicit("password", "Your password?", {"password": str})',
        'elicit("a", "A?", {"nested": {"type": "object"}})', 'elicit("a")',
        'elicit("a", "A?", 5)', 'sample("a", "x", max_tokens=0)', 'secret("no name")',
        'log("x", level="loud")',
        '[elicit("twice", "A?", {"name": str}), elicit("twice", "A?", {"name": str})]',
    ],
)  # fmt: skip
async def test_a_mistake_of_the_author_is_an_error_in_the_script(sandbox: Sandbox, asked: str):
    source = f"""
    def f() -> str:
        try:
            {asked}
        except (RuntimeError, TypeError, ValueError, NameError) as error:
            return "refused"
        return "accepted"
    """
    driven = DrivenScript(source, sandbox)
    outcome = await driven.advance()
    if isinstance(outcome, InputRequired):
        driven.asked = {one.key: one.digest for one in outcome.requests}
        assert await driven.completes(twice=accept(name="x")) == "refused"
    else:
        assert await driven.completes() == "refused"


@pytest.mark.parametrize("lost", [False, True])
async def test_a_key_is_valid_for_one_input_request_of_the_call(sandbox: Sandbox, lost: bool):
    source = """
    def f() -> str:
        for _ in range(2):
            elicit("same", "A?", {"name": str})
        return "done"
    """
    driven = DrivenScript(source, sandbox)
    await driven.asks()
    if lost:
        driven.lose_the_paused_script()
    assert "asked twice" in (await driven.fails(same=accept(name="x"))).detail


async def test_arguments_must_fit_the_schema(sandbox: Sandbox):
    driven = DrivenScript("def f(a: int): return a", sandbox, asking_call({"a": "x"}))
    failure = await driven.fails()
    assert failure.kind is FailureKind.INVALID_ARGUMENTS
    assert "a:" in failure.message


@pytest.mark.parametrize(
    ("returns", "value"),
    [
        *(("object", value) for value in ("object()", "float('nan')", "2**70", "{1: 2}", "b'x'")),
        ("list[int]", "['x']"),
    ],
)
async def test_a_result_that_is_not_json_or_not_of_the_return_type_is_an_error(
    sandbox, returns, value
):
    failure = await DrivenScript(f"def f() -> {returns}:\n return {value}", sandbox).fails()
    assert failure.kind in (FailureKind.INVALID_RESULT, FailureKind.CRASHED)
    assert failure.kind is FailureKind.INVALID_RESULT or returns == "object"


async def test_a_failed_request_is_an_error_that_a_script_can_catch(sandbox: Sandbox):
    class Broken:
        def __init__(self, error: Exception) -> None:
            self._error = error

        async def send(self, request: object, limits: object) -> Any:
            raise self._error

    source = """
    def f() -> str:
        try:
            http.get("https://x.example/")
        except RuntimeError as error:
            return str(error)
        return "sent"
    """
    refused = DrivenScript(source, sandbox, http=Broken(EgressAddressError("not allowed")))
    assert await refused.completes() == "not allowed"
    broken = DrivenScript(source, sandbox, http=Broken(OSError("/srv/secret/path")))
    assert await broken.completes() == "the request failed"


async def test_a_draining_process_yields_the_call_after_a_request(sandbox: Sandbox):
    leaving = ["the process shuts down"]
    source = """
    def f() -> int:
        one = http.get("https://x.example/").json()["number"]
        return one + http.get("https://y.example/").json()["number"]
    """
    driven = DrivenScript(source, sandbox, reason_to_move=lambda: leaving[0])
    assert isinstance(await driven.advance(), Yielded)
    leaving[0] = ""
    assert await driven.completes() == 3
    assert len(driven.http.requests) == 2


async def test_the_size_of_a_result_is_limited(sandbox: Sandbox):
    driven = DrivenScript("def f(): return 'x' * 1000", sandbox, seconds=20)
    driven.outside = driven.outside._replace(limits=RoundLimits(20, result_bytes=100))
    failure = await driven.fails()
    assert failure.kind is FailureKind.INVALID_RESULT
    assert "more than 100 bytes" in failure.message


async def test_an_error_wins_over_a_concurrent_input_request(sandbox: Sandbox):
    source = """
    import asyncio
    async def f() -> str:
        async def wrong():
            raise ValueError("wrong")
        await asyncio.gather(elicit("a", "A?", {"name": str}), wrong())
        return "done"
    """
    failure = await DrivenScript(source, sandbox).fails()
    assert failure.kind is FailureKind.CRASHED
    assert "wrong" in failure.detail


async def test_a_worker_that_dies_during_a_request_fails_the_call(sandbox: Sandbox):
    class Killer:
        """Kills all workers while a request is under way."""

        async def send(self, request: Any, limits: object) -> Any:
            for worker in children_of():
                os.kill(worker, signal.SIGKILL)
            return responded(request)

    source = "def f():\n http.get('https://x.example/')"
    failure = await DrivenScript(source, sandbox, http=Killer()).fails()
    assert failure.kind is FailureKind.CRASHED
    assert await DrivenScript("def f(): return 'on'", sandbox).completes() == "on"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{1: 'a'}", "the value has the key 1, which is not a text"),
        ("{'v': float('nan')}", "the value has the number nan, which is not JSON"),
        ("{'v': [float('-inf')]}", "the value has the number -inf, which is not JSON"),
        ("{'v': 2**70}", "the value has the integer 0x400000000000000000, which has more than 64"),
        ("{'v': b'x'}", "the value has a bytes, which is not JSON"),
        ("{'v': len}", "the value has a built-in function or type, which is not JSON"),
        ("5", "is not of type"),
    ],
)
async def test_the_problem_of_an_invalid_result_is_reported_to_the_caller(sandbox, value, reason):
    failure = await DrivenScript(f"def f() -> dict:\n    return {value}", sandbox).fails()
    assert failure.kind is FailureKind.INVALID_RESULT
    assert failure.message.startswith("The tool returned a result that is not valid: ")
    assert reason in failure.message, failure
