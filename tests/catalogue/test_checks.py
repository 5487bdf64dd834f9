"""Tests of the warnings of `manage.py check` about tools."""

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from django.core.checks import Tags, run_checks
from django.test import override_settings

from mcphost.catalogue import checks, kinds, services
from mcphost.runtime.schema import ArgumentProblem
from tests.catalogue.memory_kind import ACTOR, Shelf, fields

OURS = "mcphost.catalogue."


def found(**options: object) -> list[str]:
    return [f"{one.id} {one.msg}" for one in run_checks(**options) if one.id.startswith(OURS)]  # type: ignore[arg-type, union-attr]


def test_a_kinds_problem_is_a_warning_without_a_database(shelf: Shelf) -> None:
    shelf.problems.append(ArgumentProblem("tools/broken.py", "SyntaxError, line 3"))
    assert found() == [f"{OURS}W001 tools/broken.py: SyntaxError, line 3"]


def test_advice_on_the_code_of_a_function_is_a_warning(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "raises.py").write_text(
        "from mcphost.sdk import tool\n\n@tool\ndef look() -> str:\n    raise ValueError('no table')\n"
    )
    request.addfinalizer(kinds.discover)
    with override_settings(MCPHOST_TOOLS=tmp_path):
        (note,) = (one for one in run_checks() if one.id == "mcphost.tools.W001")
    assert note.msg.startswith(f"{tmp_path.name}/raises.py:5: look: raise ValueError")


@pytest.mark.django_db
def test_a_published_tool_that_cannot_be_served_is_a_warning(acme: UUID, shelf: Shelf) -> None:
    for function in ("demo.echo", "demo.add"):
        services.publish(services.create(acme, fields(function), ACTOR).id, ACTOR)
    services.create(acme, fields("demo.clock"), ACTOR)
    assert found(tags=[Tags.database], databases=["default"]) == []
    del shelf.functions["demo.add"]
    del shelf.functions["demo.clock"]
    (warning,) = checks.check_published(databases=["default"])
    assert (warning.id, warning.obj) == (f"{OURS}W002", f"tenant {acme}")
    assert warning.msg == "The published tool add is not served: There is no function demo.add."


@pytest.mark.django_db
def test_a_published_tool_that_large_clients_refuse_is_a_warning(acme: UUID, shelf: Shelf) -> None:
    row = services.create(acme, replace(fields("demo.echo"), name="orders.echo"), ACTOR)
    services.publish(row.id, ACTOR)
    (warning,) = checks.check_published(databases=["default"])
    assert (warning.id, warning.obj) == (f"{OURS}W003", f"tenant {acme}")
    assert "orders.echo" in warning.msg
    assert "VS Code" in warning.msg
