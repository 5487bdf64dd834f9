"""Sessions on two processes: both have the same state, and no stream is lost."""

from tests.e2e.nodes import Service
from tests.e2e.processes import Server
from tests.e2e.raw_sessions import Session, begin, calling
from tests.wire import SESSION_BASED

CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"

REVISION = SESSION_BASED[-1]


def two(service: Service) -> tuple[Session, Session]:
    session = begin(service.server, REVISION)
    return session.at(service.first.port), session.at(service.second.port)


def gone(session: Session) -> bool:
    return session.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 404


def test_a_session_streams_resumes_and_ends_on_every_supported_server(any_server: Server) -> None:
    session = begin(any_server, REVISION)
    with session.stream() as standing:
        with session.stream(calling("countdown", token="t", start=6, seconds=0.3)) as first:
            while first.message().get("params", {}).get("progress") != 1:
                pass
        with session.stream(last_event_id=first.last_id) as rest:
            told = [each.message for each in rest if each.message]
        assert [one["params"]["progress"] for one in told[:-1]] == [2, 3, 4, 5, 6]
        assert told[-1]["result"]["content"][0]["text"] == "Lift-off!"
        assert session.send(verb="DELETE").status == 204
        assert [each for each in standing if each.message] == []
    assert gone(session)


def test_the_log_level_and_end_of_a_session_apply_on_both_processes_at_once(
    two_nodes: Service,
) -> None:
    here, there = two(two_nodes)
    with here.stream(calling("countdown", token="t", start=1, seconds=0)) as loud:
        assert "notifications/message" in [each.message.get("method") for each in loud]
    assert there.ask("logging/setLevel", level="error") == {}
    with here.stream(calling("countdown", token="t", start=1, seconds=0)) as quiet:
        assert {each.message.get("method") for each in quiet if each.message} == {PROGRESS, None}
    assert there.send(verb="DELETE").status == 204
    assert gone(here)
    assert gone(there)


def test_a_cut_stream_is_resumed_at_the_other_process(
    two_nodes: Service,
) -> None:
    here, there = two(two_nodes)
    with here.stream(calling("countdown", token="t", start=20, seconds=0.1)) as first:
        while (first.message()).get("params", {}).get("progress") != 3:
            pass
    seen = [(first.last_id, 3)]
    for _ in range(2):  # while it goes on, and when all is over
        with there.stream(last_event_id=seen[0][0]) as rest:
            events = [each for each in rest if each.message]
        told = [each.message["params"]["progress"] for each in events[:-1]]
        assert told == list(range(4, 21))
        result = events[-1].message
        assert (result["id"], result["result"]["content"][0]["text"]) == (1, "Lift-off!")
        numbers = [int(each.id.split("-")[1]) for each in events]
        after = int(seen[0][0].split("-")[1])
        assert numbers == list(range(after + 1, after + 1 + len(events)))


def test_a_call_without_a_reader_can_be_cancelled_from_the_other_process(
    two_nodes: Service,
) -> None:
    here, there = two(two_nodes)
    with here.stream(calling("countdown", token="t", start=60, seconds=2)) as first:
        first.message()
    there.notify("notifications/cancelled", requestId=1)
    with there.stream(last_event_id=first.last_id) as rest:
        assert all("result" not in each.message for each in rest)


def test_notifications_go_once_to_the_newest_get_stream_on_either_process(
    two_nodes: Service,
) -> None:
    here, there = two(two_nodes)

    with here.stream() as older:
        with there.stream() as newer:
            two_nodes.change("disable")
            assert newer.message()["method"] == CHANGED
        with here.stream() as newest:
            two_nodes.change("enable")
            assert newest.message()["method"] == CHANGED
            assert here.send(verb="DELETE").status == 204
            assert [each for each in newest if each.message] == []
        assert [each for each in older if each.message] == []


def test_ending_a_session_ends_its_streams_on_all_processes(two_nodes: Service) -> None:
    here, there = two(two_nodes)
    with there.stream() as stream:
        assert here.send(verb="DELETE").status == 204
        last = list(stream)
    assert [each.retry for each in last] == [1000]
