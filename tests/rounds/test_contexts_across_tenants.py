"""The context of one tenant's call used by another tenant's call: no message is sent, and each
record names its own call only."""

import asyncio
import json
import logging
from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import MESSAGE_REFUSED, QUESTION_ASKED
from mcphost.routing import process
from mcphost.runtime.ports import Misuse
from mcphost.sdk import Context
from mcphost.serving.database import in_database
from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.client_steps import Asker, calling, done
from tests.serving.legacy.callers import Caller

pytestmark = pytest.mark.django_db(transaction=True)

MEMBERS = {name for name in dir(Context) if not name.startswith("_")}
REFUSED = "another call"
LOGGED = "a tool context was misused"


async def _entries(*actions: str) -> list[Entry]:
    await process.stop()  # which writes what waits
    found = Entry.objects.filter(action__in=actions).order_by("id")
    return await in_database(lambda: list(found))


def _lends(cast: Cast, tool: str = "lends") -> Asker:
    return calling(cast.owner.mcp_token, tool, name="it")


def _anonymous(tool: str) -> Asker:
    """An anonymous caller of another tenant."""
    return calling(None, tool, name="it").but(tenant="commons")


async def _both(lender: Asker, borrower: Asker) -> tuple[Reply, dict[str, str]]:
    """A call that lends and, while it lives, one that borrows. How they end."""
    lending = asyncio.create_task(lender.leg())
    tried: dict[str, str] = json.loads(done(await borrower.leg()))
    done(await borrower.but(params={"name": "wants_back", "arguments": {"name": "it"}}).leg())
    return await lending, tried


@pytest.mark.parametrize("how", ["borrows", "borrows_in_thread"])
@pytest.mark.parametrize("tool", ["lends", "lends_in_thread"])
async def test_each_record_of_a_foreign_context_names_its_own_call_and_only_the_log_names_both(
    asking: Cast, tool: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    lent, tried = await _both(_lends(asking, tool), _anonymous(how))
    assert done(lent) == "done"
    assert len(lent.messages) == 1
    assert set(tried) == MEMBERS
    assert all(REFUSED in error for error in tried.values()), tried
    found = await _entries(MESSAGE_REFUSED)
    calls_of = {
        one.tenant: {each.call for each in found if each.tenant == one.tenant} for one in found
    }
    [lenders], [borrowers] = calls_of[asking.acme.id], calls_of[asking.commons.id]
    assert isinstance(lenders, UUID)
    assert isinstance(borrowers, UUID)
    for entry in found:
        is_lent = entry.tenant == asking.acme.id
        assert entry.reason == (Misuse.LENT if is_lent else Misuse.BORROWED)
        assert entry.target == (tool if is_lent else how)
        other = borrowers if is_lent else lenders
        assert str(other) not in json.dumps([entry.facts, entry.reason, str(entry.http_request_id)])
    assert await _entries(QUESTION_ASKED) == []
    lines = [
        one for one in caplog.records if one.message == LOGGED and one.levelno == logging.WARNING
    ]
    both = [one for one in lines if getattr(one, "misuse", "") == Misuse.BORROWED]
    assert len(both) == len(MEMBERS)
    assert {_logged(one) for one in both} == {
        (str(borrowers), str(asking.commons.id), str(lenders), str(asking.acme.id))
    }


def _logged(line: Any) -> tuple[str, str, str, str]:
    return line.call, line.tenant_id, line.other_call, line.other_tenant_id


async def test_misuse_from_outside_any_call_is_recorded_for_the_call_that_owns_the_context(
    asking: Cast,
) -> None:
    lent, tried = await _both(_lends(asking), _anonymous("borrows_in_no_call"))
    assert done(lent) == "done"
    assert set(tried) == MEMBERS
    assert all("ctx.in_thread" in error for error in tried.values()), tried
    found = await _entries(MESSAGE_REFUSED)
    assert {(one.tenant, one.reason) for one in found} == {(asking.acme.id, Misuse.OUTSIDE)}


async def test_the_context_of_a_session_call_cannot_be_used_by_other_calls(asking: Cast) -> None:
    caller = await Caller.at(asking)
    call = caller.call("lends", name="it")
    tried = json.loads(done(await _anonymous("borrows").leg()))
    done(await _anonymous("wants_back").leg())
    answer = await asyncio.wait_for(call.settled(), 10)
    assert answer is not None
    assert all(REFUSED in error for error in tried.values()), tried
    found = await _entries(MESSAGE_REFUSED, QUESTION_ASKED)
    assert {(one.tenant, one.reason) for one in found} == {
        (asking.acme.id, Misuse.LENT),
        (asking.commons.id, Misuse.BORROWED),
    }
