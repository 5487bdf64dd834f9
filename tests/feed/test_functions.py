"""The functions that other processes have loaded, as a process knows them from their rows."""

from collections.abc import Callable

import pytest
from django.db.models.functions import Now

from mcphost.feed.models import Node, NodeFunctions
from mcphost.feed.nodes import ABSENT_SECONDS, ALIVE, BEAT_SECONDS, KEPT, Heartbeat
from tests.feed.manual_heartbeats import outlast_a_restart
from tests.feed.test_loop import HandClock
from tests.feed.test_nodes import SECOND, age

pytestmark = pytest.mark.django_db(transaction=True)

ECHO, ASK = "demo.echo", "demo.ask"


def process(clock: Callable[[], float] | None = None, **functions: str) -> Heartbeat:
    """A process that has these functions of `demo`, and has written its first heartbeat."""
    made = Heartbeat(clock or HandClock())
    declared = {f"demo.{name}": text for name, text in functions.items()}
    made.functions = lambda: declared
    made.beat()
    return made


def of_the_version_before() -> None:
    """A process that writes heartbeats and declares no functions."""
    NodeFunctions.objects.filter(node=process().id).delete()


def test_a_process_knows_the_functions_of_other_processes() -> None:
    other, mine = process(echo="1"), process(ask="2")
    assert (mine.elsewhere(ECHO), mine.elsewhere(ASK)) == ("1", None)
    assert mine.loaded_by(other.id) == {ECHO: "1"}
    assert mine.loaded_by(mine.id) == {ASK: "2"}
    assert other.elsewhere(ASK) is None, "it began before"
    other.drains = lambda: True
    other.beat()
    assert other.elsewhere(ASK) == "2"
    assert process().elsewhere(ECHO) == "1", "workers and draining processes count"
    mine.unregister()
    assert mine.elsewhere(ECHO) is None
    Node.objects.all().delete()
    assert not NodeFunctions.objects.exists()
    other.beat()
    assert process().elsewhere(ECHO) == "1", "one that was forgotten declares them again"


def test_the_declaration_of_the_most_recently_started_process_wins() -> None:
    first = process(echo="old", ask="old")
    second = process(echo="new")
    Node.objects.filter(id=first.id).update(started_at=Now() - SECOND)
    mine = process()
    assert (mine.elsewhere(ECHO), mine.elsewhere(ASK)) == ("new", "old")
    Node.objects.filter(id=second.id).update(started_at=Now() - 2 * SECOND)
    assert process().elsewhere(ECHO) == "old"


@pytest.mark.parametrize("killed", [False, True])
def test_a_function_stays_declared_for_the_duration_of_a_restart(killed: bool) -> None:
    clock = HandClock()
    other, mine = process(echo="1"), process(clock)
    assert mine.may_come("newer.tool"), "it has just started, and waits for others to come"
    if killed:
        age(other, ALIVE + SECOND)
    else:
        other.unregister()
    passed = 0.0
    while passed <= ABSENT_SECONDS:
        assert mine.elsewhere(ECHO) == "1"
        assert mine.may_come(ECHO)
        clock.now += BEAT_SECONDS
        passed += BEAT_SECONDS
        mine.beat()
    outlast_a_restart(mine, clock)
    assert mine.elsewhere(ECHO) is None
    assert not mine.may_come(ECHO)
    assert not mine.may_come("newer.tool")
    other.beat()
    mine.beat()
    assert mine.elsewhere(ECHO) == "1", "it has come back"


def test_functions_stay_declared_for_a_restart_after_a_database_outage() -> None:
    """It silences all processes at once, so the first one that writes again finds no other alive."""
    clock = HandClock()
    other, mine = process(echo="1"), process(clock)
    clock.now += 10 * ABSENT_SECONDS
    age(other, 10 * ABSENT_SECONDS * SECOND)
    mine.beat()
    assert mine.elsewhere(ECHO) == "1"
    assert mine.may_come(ECHO)
    assert mine.may_come("newer.tool"), "a process with it may have begun meanwhile"
    other.beat()
    clock.now += BEAT_SECONDS
    mine.beat()
    assert mine.elsewhere(ECHO) == "1"
    other.unregister()
    outlast_a_restart(mine, clock)
    assert not mine.may_come(ECHO), "the grace is that of any other end"


def test_a_process_of_a_version_without_declarations_may_have_any_function() -> None:
    clock = HandClock()
    of_the_version_before()
    mine = process(clock)
    outlast_a_restart(mine, clock)
    assert mine.may_come(ECHO)
    assert mine.elsewhere(ECHO) is None
    (silent,) = [row for row in Node.objects.all() if row.id != mine.id]
    assert mine.loaded_by(silent.id) is None
    Node.objects.filter(id=silent.id).delete()
    mine.beat()
    assert not mine.may_come(ECHO)


def test_the_functions_of_a_process_are_deleted_with_its_row() -> None:
    mine = process(echo="1")
    mine.unregister()
    assert not NodeFunctions.objects.exists()
    dead = process(echo="1")
    age(dead, KEPT + SECOND)
    process()
    assert not NodeFunctions.objects.filter(node=dead.id).exists()
