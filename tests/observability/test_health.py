import logging

from mcphost.observability import health


def test_what_is_wrong_is_told_by_the_name_of_the_last_probe_until_it_is_taken_back():
    registry = health.Registry()
    remove = registry.register("writer", lambda: "the oldest record waits for 3 s")
    registry.register("feed", lambda: "old")
    registry.register("feed", lambda: None)
    assert registry.problems() == {"writer": "the oldest record waits for 3 s"}
    remove()
    remove()
    assert registry.problems() == {}


def test_a_probe_that_replaced_another_is_not_removed_with_it() -> None:
    registry = health.Registry()
    remove = registry.register("feed", lambda: "old")
    registry.register("feed", lambda: "new")
    remove()
    assert registry.problems() == {"feed": "new"}


def test_a_probe_that_fails_is_a_problem_without_its_details(caplog):
    def broken() -> str | None:
        raise RuntimeError("postgres://app:hunter2@db")

    registry = health.Registry()
    registry.register("database", broken)
    with caplog.at_level(logging.ERROR):
        assert registry.problems() == {"database": "the health probe raised an error"}
    assert "the health probe database raised an error" in caplog.text


def test_the_process_has_one_registry():
    remove = health.register("test-probe", lambda: "seen")
    try:
        assert health.problems()["test-probe"] == "seen"
    finally:
        remove()
    assert "test-probe" not in health.problems()


def test_facts_are_told_once_there_are_some() -> None:
    registry = health.Registry()
    told: dict[str, object] = {}
    registry.inform("sandbox", lambda: told)
    assert registry.facts() == {}
    told["own_user"] = True
    assert registry.facts() == {"sandbox": {"own_user": True}}
    assert registry.problems() == registry.warnings() == {}
