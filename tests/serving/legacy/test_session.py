"""Sessions: the callers for which they are valid, and changes that apply to the next request."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import Settings

from mcphost.audit.writer.writer import writer
from mcphost.calls import sessions as rows
from mcphost.calls.models import Session as SessionModel
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.sealing.tokens import LIMITS, Purpose
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.legacy import session as sessions
from mcphost.serving.legacy.session import NoSessionError
from tests.kinds.rounds import TENANT

pytestmark = pytest.mark.django_db(transaction=True)

ADA = Principal(PrincipalKind.TOKEN, TENANT, id="t1")
NOBODY = Principal(PrincipalKind.ANONYMOUS, TENANT, label="anonymous")
REVISION = REVISIONS["2025-11-25"]
PARAMS = {
    "protocolVersion": "2025-11-25",
    "clientInfo": {"name": "Inspector", "version": "1.2"},
    "capabilities": {"elicitation": {"form": {}}, "sampling": {}, "other": {}},
}


@pytest.fixture(autouse=True)
def _writer() -> Iterator[None]:
    writer.start()
    yield
    assert writer.stop()


async def test_a_session_is_found_by_its_token_with_its_client_info() -> None:
    begun, token = await sessions.begin(ADA, REVISION, PARAMS)
    found = await sessions.find(ADA, token)
    assert found == begun
    assert (found.client.name, found.client.version) == ("Inspector", "1.2")
    assert found.client.can("elicitation.form")
    assert not found.client.can("other")
    assert len(token) <= LIMITS[Purpose.SESSION]


@pytest.mark.parametrize(
    "other",
    [
        Principal(PrincipalKind.TOKEN, TENANT, id="t2"),
        Principal(PrincipalKind.TOKEN, uuid4(), id="t1"),
        NOBODY,
    ],
)
async def test_a_session_is_not_found_for_another_caller(other: Principal) -> None:
    _, token = await sessions.begin(ADA, REVISION, PARAMS)
    with pytest.raises(NoSessionError):
        await sessions.find(other, token)


async def test_anonymous_callers_are_distinguished_by_their_sessions() -> None:
    first, token = await sessions.begin(NOBODY, REVISION, PARAMS)
    second, _ = await sessions.begin(NOBODY, REVISION, PARAMS)
    assert (
        (await sessions.find(NOBODY, token)).principal_key
        == f"anonymous:{first.id}"
        != second.principal_key
    )
    bound = sessions.principal_in(first, NOBODY)
    assert (bound.id, bound.label) == (str(first.id), "anonymous")
    assert sessions.principal_in(first, ADA) == ADA
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)


@pytest.mark.parametrize("token", ["", "nonsense", "mcps1.00000000.AAAA"])
async def test_an_invalid_token_finds_no_session(token: str) -> None:
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)


async def test_an_ended_session_is_not_found() -> None:
    session, token = await sessions.begin(ADA, REVISION, PARAMS)
    await sessions.end(session)
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)


@pytest.fixture
def _short(settings: Settings) -> Iterator[None]:
    settings.MCPHOST_CLIENT_SESSION_SECONDS = -1.0
    yield


async def expire(session: ClientSession) -> None:
    past = timezone.now() - timedelta(seconds=1)
    change = SessionModel.objects.filter(id=session.id)
    await in_database(lambda: change.update(expires_at=past, used_at=past))


async def test_a_used_session_stays_alive_before_its_use_is_written() -> None:
    session, token = await sessions.begin(ADA, REVISION, PARAMS)
    await sessions.find(ADA, token)
    await expire(session)
    assert (await sessions.find(ADA, token)).id == session.id
    rows.session_uses.forget_all()
    await expire(session)
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)


@pytest.mark.usefixtures("_short")
async def test_a_session_expires_and_is_deleted() -> None:
    _, token = await sessions.begin(ADA, REVISION, PARAMS)
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)
    assert await in_database(rows.prune) == 1
    assert await in_database(rows.prune) == 0


async def test_a_change_to_a_session_applies_to_its_next_request() -> None:
    session, token = await sessions.begin(ADA, REVISION, PARAMS)
    await in_database(rows.set_log_level, session.id, "warning")
    assert (await sessions.find(ADA, token)).log_level == "warning"
    await sessions.set_log_level(session, "error")
    assert (await sessions.find(ADA, token)).log_level == "error"


async def test_client_info_of_unlimited_length_is_not_stored() -> None:
    said = {
        "clientInfo": {"name": "x" * 5_000, "version": 7},
        "capabilities": {"sampling": {"context": {}}, "roots": {"x": "y" * 20_000}},
    }
    session, _ = await sessions.begin(ADA, REVISION, said)
    assert len(session.client.name) == sessions.MAX_NAME
    assert session.client.version == "7"
    assert session.client.capabilities == {"sampling": {}, "roots": {}}
    odd, _ = await sessions.begin(ADA, REVISION, {"clientInfo": 5, "capabilities": []})
    assert (odd.client.name, odd.client.capabilities) == ("", {})
    for value in ([[]] * 3, {"a": 1}):
        odd, _ = await sessions.begin(
            ADA, REVISION, {"clientInfo": {"name": value, "version": value}}
        )
        assert (odd.client.name, odd.client.version) == ("", "")


async def test_characters_that_the_database_refuses_are_escaped() -> None:
    said = {
        "clientInfo": {"name": "a\0b", "version": "\0"},
        "capabilities": {"experimental": {"x\0": {"y": "\0"}}},
    }
    begun, token = await sessions.begin(ADA, REVISION, {**PARAMS, **said})
    found = await sessions.find(ADA, token)
    assert found == begun
    assert (found.client.name, found.client.version) == ("a\\u0000b", "\\u0000")
    assert "\0" not in repr(found.client).replace("\\x00", "\0")


async def test_a_session_of_a_revision_no_longer_supported_ends() -> None:
    session, token = await sessions.begin(ADA, REVISION, PARAMS)
    change = SessionModel.objects.filter(id=session.id)
    await in_database(lambda: change.update(revision="2024-10-07"))
    sessions._cached.clear()  # as in a process of another version
    with pytest.raises(NoSessionError):
        await sessions.find(ADA, token)
