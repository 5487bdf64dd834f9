"""Tests of the connection log: its steps, and what strangers can make of it."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.serializers import serialize
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED, new_id
from mcphost.identity import tokens
from mcphost.identity.models import Connection, ConnectionStep, Token
from mcphost.identity.oauth import connection_log
from mcphost.identity.oauth.connection_log import (
    MAX_NOTED,
    MAX_PER_TENANT,
    StepKind,
    StepRecord,
    attempts,
    note,
    note_refused_token,
)
from mcphost.identity.oauth.connections import end
from mcphost.identity.selectors import last_use as credential_use
from tests.cast import ACTOR, Cast
from tests.oauth import (
    VERIFIER,
    code_of,
    connect,
    connection_of,
    make_client,
    membership_of,
    pair_of,
    redeem,
)

pytestmark = pytest.mark.django_db

CountQueries = Callable[[int], AbstractContextManager[Any]]
MINUTE = timedelta(minutes=1)


def taken(tenant: UUID, user_id: int | None = None) -> list[list[StepKind]]:
    """Return the steps of each attempt, those of the clients that came last first."""
    return [[step.step for step in attempt.steps] for attempt in attempts(tenant, user_id)]


def flush() -> None:
    last_use.flush(timezone.now())


def test_the_steps_of_a_client_and_a_person_are_one_attempt(cast: Cast) -> None:
    client = make_client()
    connection_log.write(connection_log.arrival(membership_of(cast.member), client))
    connect(client, cast.member)
    (attempt,) = attempts(cast.acme.id)
    assert (attempt.person, attempt.name) == ("member", "Laptop")
    assert [step.step for step in attempt.steps] == [
        StepKind.REGISTERED,
        StepKind.SIGNED_IN,
        StepKind.CONSENTED,
        StepKind.REDEEMED,
    ]
    assert attempt.steps[0].at == client.created_at
    connect(client, cast.owner)
    assert [attempt.person for attempt in attempts(cast.acme.id)] == ["owner", "member"]
    assert [attempt.person for attempt in attempts(cast.acme.id, cast.member.user.pk)] == ["member"]
    assert attempts(cast.globex.id) == ()


def test_a_step_that_is_taken_again_does_not_add_a_row(cast: Cast) -> None:
    client = make_client()
    connect(client, cast.member)
    rows = ConnectionStep.objects.count()
    before = attempts(cast.acme.id)[0].last.at
    connect(client, cast.member)
    assert ConnectionStep.objects.count() == rows
    assert attempts(cast.acme.id)[0].last.at > before


def test_steps_that_a_newer_process_writes_are_not_shown(cast: Cast) -> None:
    connect(make_client(), cast.member)
    newest = ConnectionStep.objects.get(step=StepKind.REDEEMED)
    ConnectionStep.objects.filter(pk=newest.pk).update(step="of a later version")
    assert taken(cast.acme.id) == [[StepKind.CONSENTED]]


def test_a_code_that_does_not_fit_its_verifier_is_refused_with_a_reason(cast: Cast) -> None:
    client = make_client()
    code = code_of(client, cast.member)
    assert redeem(client, code, code_verifier="x" * 43).status == 400
    last = attempts(cast.acme.id)[0].last
    assert last.step is StepKind.CODE_REFUSED
    assert "issued for another client_id, redirect_uri or code_verifier" in last.detail
    pair_of(redeem(client, code))
    assert attempts(cast.acme.id)[0].last.step is StepKind.REDEEMED


def test_a_code_that_was_never_issued_writes_nothing(cast: Cast) -> None:
    assert redeem(make_client(), "invented").status == 400
    assert not ConnectionStep.objects.exists()


def test_the_end_of_a_connection_is_logged_with_its_reason(cast: Cast) -> None:
    connect(make_client(), cast.member)
    end(cast.acme.id, connection_of(cast.member), actor=ACTOR)
    last = attempts(cast.acme.id)[0].last
    assert (last.step, last.detail) == (StepKind.ENDED, "revoked")


def test_no_secret_is_in_the_log(cast: Cast) -> None:
    client = make_client()
    code = code_of(client, cast.member)
    pair = pair_of(redeem(client, code))
    note_refused_token("acme", pair.access)
    note_refused_token("acme", "mcph_no-token")
    flush()
    stored = serialize("json", ConnectionStep.objects.all())
    for secret in (code, pair.access, pair.refresh, VERIFIER, "no-token"):
        assert secret not in stored


def test_a_connection_is_first_used_and_then_calls(cast: Cast) -> None:
    connect(make_client(), cast.member)
    connection = Connection.objects.get()
    credential_use.note(str(connection.pk), timezone.now())
    flush()
    assert taken(cast.acme.id)[0][-1] is StepKind.PRESENTED
    called = add_call(cast.acme.id, connection)
    add_call(cast.acme.id, connection)
    credential_use.note(str(connection.pk), timezone.now())
    last_use.flush(timezone.now() + MINUTE)
    last = attempts(cast.acme.id)[0].last
    assert (last.step, last.detail, last.at) == (StepKind.FIRST_CALL, "echo", called.at)
    connection.refresh_from_db()
    assert connection.last_used_at is not None


def test_another_connection_of_the_same_client_is_first_used_again(cast: Cast) -> None:
    client = make_client()
    for _ in range(2):
        connect(client, cast.member)
        connection = connection_of(cast.member)
        credential_use.note(str(connection), timezone.now())
        flush()
        assert attempts(cast.acme.id)[0].last.step is StepKind.PRESENTED
        end(cast.acme.id, connection, actor=ACTOR)


def test_a_connection_that_has_ended_is_not_logged_as_used(cast: Cast) -> None:
    connect(make_client(), cast.member)
    connection = connection_of(cast.member)
    credential_use.note(str(connection), timezone.now())
    end(cast.acme.id, connection, actor=ACTOR)
    flush()
    assert attempts(cast.acme.id)[0].last.step is StepKind.ENDED


def add_call(tenant: UUID, connection: Connection) -> Entry:
    return Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        tenant=tenant,
        call=uuid4(),
        action=ROUND_FINISHED,
        actor_kind="token",
        token_id=str(connection.pk),
        target="echo",
    )


def test_a_call_that_was_under_way_is_found_without_another_use(cast: Cast) -> None:
    connect(make_client(), cast.member)
    connection, now = Connection.objects.get(), timezone.now()
    credential_use.note(str(connection.pk), now)
    assert last_use.flush(now) == 1
    add_call(cast.acme.id, connection)
    assert last_use.flush(now + MINUTE) == 1
    assert attempts(cast.acme.id)[0].last.step is StepKind.FIRST_CALL
    assert last_use.flush(now + 2 * MINUTE) == 0


def test_anonymous_steps_are_written_later_and_once_a_minute(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    with django_assert_num_queries(0):
        for _ in range(3):
            note(StepKind.CHALLENGED, "acme")
            note(StepKind.METADATA, "acme")
            note(StepKind.METADATA, "no-such-tenant")
    flush()
    assert [set(steps) for steps in taken(cast.acme.id)] == [
        {StepKind.CHALLENGED, StepKind.METADATA}
    ]
    assert attempts(cast.acme.id)[0].person == attempts(cast.acme.id)[0].name == ""
    assert ConnectionStep.objects.count() == 2
    first = attempts(cast.acme.id)[0].last.at
    note(StepKind.METADATA, "acme")
    flush()
    assert attempts(cast.acme.id)[0].last.at == first
    last_use.flush(timezone.now() + MINUTE)
    assert attempts(cast.acme.id)[0].last.at > first


def test_strangers_fill_neither_the_memory_nor_the_table(
    cast: Cast, django_assert_num_queries: CountQueries
) -> None:
    for number in range(10_000):
        note(StepKind.METADATA, f"name-{number}")
        note_refused_token(f"name-{number}", "nonsense")
    note(StepKind.METADATA, "a name that is no slug")
    # One for the tenants: at most MAX_NOTED names are looked up, and none of them exists.
    with django_assert_num_queries(1):
        assert last_use.flush(timezone.now()) == MAX_NOTED
    assert last_use.flush(timezone.now() + MINUTE) == 0
    assert not ConnectionStep.objects.exists()
    note(StepKind.METADATA, "acme")
    flush()
    assert taken(cast.acme.id) == [[StepKind.METADATA]]


def test_invented_tokens_leave_two_rows_at_most(cast: Cast) -> None:
    for _ in range(50):
        note_refused_token("acme", tokens.new(secrets.token_bytes))
        note_refused_token("acme", secrets.token_hex())
    note_refused_token("acme", None)
    flush()
    assert [set(steps) for steps in taken(cast.acme.id)] == [
        {StepKind.MALFORMED, StepKind.UNKNOWN_TOKEN}
    ]
    assert ConnectionStep.objects.count() == 2


def refused(cast: Cast, bearer: str, slug: str = "acme", **changed: Any) -> list[tuple[str, ...]]:
    parsed = tokens.parse(bearer)
    assert parsed is not None
    Token.objects.filter(pk=parsed.id).update(**changed)
    note_refused_token(slug, bearer)
    flush()
    return [(row.person, row.name, row.last.step) for row in attempts(cast.acme.id)]


def test_a_refused_token_names_its_owner_and_the_reason(cast: Cast) -> None:
    past = timezone.now() - MINUTE
    name = "token “member's client”"
    bearer = cast.member.mcp_token
    assert refused(cast, bearer, expires_at=past) == [("member", name, StepKind.EXPIRED)]
    bearer = cast.owner.mcp_token
    expected = ("owner", "token “owner's client”", StepKind.REVOKED)
    assert refused(cast, bearer, revoked_at=past)[0] == expected
    bearer = cast.auditor.mcp_token
    expected = ("auditor", "token “auditor's client”", StepKind.INACTIVE)
    assert refused(cast, bearer, membership=None)[0] == expected


def test_an_expired_token_of_a_connection_names_its_client(cast: Cast) -> None:
    bearer = connect(make_client(), cast.member).access
    expected = ("member", "Laptop", StepKind.EXPIRED)
    assert refused(cast, bearer, expires_at=timezone.now() - MINUTE) == [expected]


def test_a_token_of_another_tenant_is_logged_in_its_own_only(cast: Cast) -> None:
    assert refused(cast, cast.stranger.mcp_token) == []
    (attempt,) = attempts(cast.globex.id)
    assert (attempt.person, attempt.last.step) == ("stranger", StepKind.ELSEWHERE)


def test_a_token_with_the_id_of_another_names_nobody(cast: Cast) -> None:
    invented = tokens.new(secrets.token_bytes)
    parsed = tokens.parse(invented)
    assert parsed is not None
    Token.objects.filter(owner=cast.member.user).update(id=parsed.id, digest=b"another")
    assert refused(cast, invented) == [("", "", StepKind.UNKNOWN_TOKEN)]


def test_old_steps_and_those_above_the_limit_are_pruned(cast: Cast) -> None:
    now = timezone.now()
    old = StepRecord(cast.globex.id, StepKind.METADATA, now - timedelta(days=31))
    connection_log.write([old, old._replace(tenant_id=cast.acme.id)])
    connection_log.write(
        StepRecord(
            cast.acme.id,
            StepKind.SIGNED_IN,
            now + timedelta(seconds=number),
            client=str(number),
        )
        for number in range(MAX_PER_TENANT + 20)
    )
    assert connection_log.prune() == 22
    assert connection_log.prune() == 0
    kept = ConnectionStep.objects.order_by("at").first()
    assert kept is not None
    assert kept.client == "20"
