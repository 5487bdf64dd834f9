"""What a tenant offers at a process that lacks the code, and where another process has it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any
from uuid import UUID

import pytest

from mcphost.catalogue import kinds, remote_functions, selectors, services
from mcphost.catalogue.seeding import publish_functions
from mcphost.catalogue.snapshots import Offering, Snapshot
from mcphost.feed.nodes import Heartbeat, heartbeat
from mcphost.kinds import declarations
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import PythonKind, python_kind
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import create_tenant
from tests.catalogue.memory_kind import ACTOR
from tests.e2e.processes import ROOT
from tests.feed.manual_heartbeats import outlast_a_restart
from tests.feed.test_loop import HandClock

pytestmark = pytest.mark.django_db(transaction=True)

ECHO = "demo.echo"
COMPILED = {"input_validator", "input_redactor", "output_validator", "output_redactor"}
"""Objects that are made of the schemas."""


@pytest.fixture(scope="module")
def demo() -> Mapping[str, Compiled]:
    """The functions of the folder of tools."""
    kind = PythonKind()
    kind.configure(ROOT / "tools")
    return kind.functions()


@pytest.fixture(autouse=True)
def _loaded(demo: Mapping[str, Compiled], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_kind, "_compiled", dict(demo))


@pytest.fixture
def tenant(_loaded: None) -> UUID:
    """A tenant that has published all functions of the demo."""
    id = create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR).id
    names = [name for name, _ in kinds.functions() if name.startswith("demo.")]
    assert {kinds.primitive_type_of(name) for name in names} == set(PrimitiveType)
    publish_functions(id, names, ACTOR)
    return id


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heartbeat]:
    """Another process, which has written no heartbeat yet."""
    heartbeat._begin()
    made = Heartbeat()
    made.functions = remote_functions.declared
    yield made
    heartbeat._begin()
    monkeypatch.undo()
    selectors.forget_all()


def lack(monkeypatch: pytest.MonkeyPatch, *functions: str) -> None:
    """From now on this process lacks these functions; all, if none is named."""
    left = {
        name: one
        for name, one in python_kind.functions().items()
        if functions and name not in functions
    }
    monkeypatch.setattr(python_kind, "_compiled", left)
    selectors.forget_all()


def served(snapshot: Snapshot) -> dict[str, Any]:
    """All of a snapshot but the code, and what its schemas are compiled to."""
    values = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    for name in {"program", "missing_function"} | COMPILED & values.keys():
        del values[name]
    if "uri_template" in values:
        values["uri_template"] = values["uri_template"].text
    if "completer" in values:
        values["completer"] = values["completer"] is not None
    return values


def everything(offering: Offering) -> list[dict[str, Any]]:
    return [served(snapshot) for snapshot in offering.everything]


def test_a_process_without_the_code_offers_the_same_primitives_as_one_with_it(
    tenant, other, monkeypatch
):
    there = selectors.offering(tenant)
    other.beat()
    lack(monkeypatch)
    heartbeat.beat()
    here = selectors.offering(tenant)
    assert here is not there
    assert everything(here) == everything(there)
    assert (here.problems, there.problems) == ((), ())
    assert {snapshot.primitive_type for snapshot in here.everything} == set(PrimitiveType)
    for mine, others in zip(here.everything, there.everything, strict=True):
        assert (mine.program, others.missing_function) == (declarations.ABSENT_PROGRAM, "")
        assert mine.missing_function.startswith("demo.")
        for arguments in ({}, {"text": 5}, {"text": "a"}, {"invented": 1}):
            problems = [each.input_validator.problems(arguments) for each in (mine, others)]
            assert problems[0] == problems[1]


def test_the_code_of_this_process_has_precedence(tenant, other, monkeypatch):
    changed = replace(python_kind.functions()[ECHO], description="Of the other process.")
    other.functions = lambda: {ECHO: declarations.write(changed)}
    other.beat()
    heartbeat.beat()
    mine = selectors.offering(tenant).tools_by_name["echo"]
    assert mine.missing_function == ""
    assert mine.listing["description"] != "Of the other process."
    lack(monkeypatch, ECHO)
    others = selectors.offering(tenant).tools_by_name["echo"]
    assert (others.missing_function, others.listing["description"]) == (
        ECHO,
        "Of the other process.",
    )


def test_an_offering_changes_when_processes_with_the_code_start_and_stop(
    tenant, other, monkeypatch
):
    clock = HandClock()
    monkeypatch.setattr(heartbeat, "_clock", clock)
    declared = remote_functions.declared()
    other.functions = lambda: declared
    lack(monkeypatch, ECHO)
    heartbeat.beat()
    offering = selectors.offering(tenant)
    assert "echo" not in offering.tools_by_name
    (problem,) = offering.problems
    assert (problem.name, problem.missing_function) == ("echo", ECHO)
    other.beat()
    heartbeat.beat()
    assert selectors.offering(tenant).tools_by_name["echo"].missing_function == ECHO
    other.unregister()
    heartbeat.beat()
    assert selectors.offering(tenant).tools_by_name["echo"].missing_function == ECHO, (
        "it may come back"
    )
    outlast_a_restart(heartbeat, clock)
    assert "echo" not in selectors.offering(tenant).tools_by_name


def test_functions_without_a_grant_or_publication_are_not_offered(tenant, other, monkeypatch):
    other.beat()
    lack(monkeypatch)
    heartbeat.beat()
    echo = selectors.offering(tenant).tools_by_name["echo"]
    services.revoke_grant(tenant, ECHO, ACTOR)
    assert "echo" not in selectors.offering(tenant).tools_by_name
    add = selectors.offering(tenant).tools_by_name["add"]
    services.disable(add.id, ACTOR)
    assert "add" not in selectors.offering(tenant).tools_by_name
    assert echo.scopes == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        '{"completes": false}',
    ],
    ids=range(3),
)
def test_an_unreadable_declaration_does_not_affect_other_functions(
    tenant, other, monkeypatch, caplog, text
):
    declared = {**remote_functions.declared(), ECHO: text}
    other.functions = lambda: declared
    other.beat()
    lack(monkeypatch)
    heartbeat.beat()
    offering = selectors.offering(tenant)
    assert [problem.name for problem in offering.problems] == ["echo"]
    assert "add" in offering.tools_by_name
    assert "cannot be read" in caplog.text


def test_a_function_of_another_type_is_not_offered_as_the_published_one(tenant, other, monkeypatch):
    changed = replace(python_kind.functions()[ECHO], primitive_type=PrimitiveType.PROMPT)
    other.functions = lambda: {ECHO: declarations.write(changed)}
    other.beat()
    lack(monkeypatch, ECHO)
    heartbeat.beat()
    assert [problem.name for problem in selectors.offering(tenant).problems] == ["echo"]


def test_a_function_whose_schema_is_not_valid_json_is_not_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = python_kind.functions()[ECHO]
    bad = replace(good, input_schema={"default": float("nan")})
    monkeypatch.setattr(python_kind, "_compiled", {"demo.good": good, "demo.bad": bad})
    assert list(remote_functions.declared()) == ["demo.good"]
