"""Records of rounds, and their actors."""

import time
from uuid import UUID, uuid4

from mcphost.audit.records import NO_ENDING, Ending, Record, RecordedRequest, new_id, of_round
from mcphost.audit.writer.rows import ENTRY_COLUMNS
from mcphost.protocol.revisions import Era
from mcphost.runtime.call import Call, Client, Delivery, Principal, PrincipalKind
from tests.audit.databases import AT

TENANT = UUID(int=1)
PRINCIPAL = Principal(
    PrincipalKind.TOKEN, TENANT, "tok_1", "Ada's laptop", frozenset({"mcp:call"}), 7, "tok_1"
)
CALL = Call(
    uuid4(), TENANT, PRINCIPAL, "tools/call", "echo", {"text": "hello"}, Client("client", "1.2"),
    "2026-07-28", Era.MODERN, Delivery.MODERN, 2, "00af",
)  # fmt: skip


def test_record_ids_are_distinct_time_ordered_uuids_of_version_7() -> None:
    before = time.time_ns() // 1_000_000
    ids = [new_id() for _ in range(10_000)]
    after = time.time_ns() // 1_000_000
    assert len(set(ids)) == len(ids)
    assert {(each.version, each.variant) for each in ids} == {(7, "specified in RFC 4122")}
    stamps = [each.int >> 80 for each in ids]
    assert [each.int >> 64 for each in ids] == sorted(each.int >> 64 for each in ids)
    assert before <= stamps[0] <= stamps[-1] <= after


def test_the_record_of_a_round_has_its_actor_target_outcome_and_source() -> None:
    request = RecordedRequest(uuid4(), "192.0.2.1", 321)
    ending = Ending("tool_error", "it broke", 1500, 99, {"result": {}})
    record = of_round("round.finished", CALL, request, AT, ending, "3+ab12cd")
    assert record == Record(
        id=record.id, at=AT, tenant=TENANT, call=CALL.id, http_request_id=request.id, round=2, duration_us=1500,
        bytes_in=321, bytes_out=99, action="round.finished", actor_kind="token", actor_id="tok_1",
        actor_label="Ada's laptop", token_id="tok_1", method="tools/call", target="echo",
        target_version="3+ab12cd", revision="2026-07-28", era="modern", delivery="modern",
        client_name="client", client_version="1.2", outcome="tool_error", reason="it broke",
        source="192.0.2.1", trace_id="00af", facts=None, payload={"result": {}},
    )  # fmt: skip
    assert {type(text) for text in record[9:26]} == {str}, "no enum that a driver must look at"
    assert (*Record._fields[:-1], "commitment") == ENTRY_COLUMNS
    begun = of_round("round.started", CALL, request, AT, NO_ENDING, "3")
    assert (begun.action, begun.round, begun.target_version) == ("round.started", 2, "3")
    assert (begun.outcome, begun.duration_us, begun.bytes_out, begun.payload) == ("", *[None] * 3)
