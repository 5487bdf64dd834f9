import logging

from mcphost.observability import health


def test_a_problem_is_reported_by_the_last_registered_probe_until_it_is_removed():
    registry = health.Registry()
    remove = registry.register("writer", lambda: "the oldest record waits for 3 s")
    registry.register("feed", lambda: "old")
    registry.register("feed", lambda: None)
    assert registry.problems() == {"writer": "the oldest record waits for 3 s"}
    remove()
    remove()
    assert registry.problems() == {}


def test_removing_a_replaced_probe_keeps_its_replacement() -> None:
    registry = health.Registry()
    remove = registry.register("feed", lambda: "old")
    registry.register("feed", lambda: "new")
    remove()
    assert registry.problems() == {"feed": "new"}


def test_a_probe_that_raises_is_reported_as_a_problem_without_details(caplog):
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


def test_facts_are_reported_only_if_there_are_any() -> None:
    registry = health.Registry()
    told: dict[str, object] = {}
    registry.inform("sandbox", lambda: told)
    assert registry.facts() == {}
    told["own_user"] = True
    assert registry.facts() == {"sandbox": {"own_user": True}}
    assert registry.problems() == registry.warnings() == {}
