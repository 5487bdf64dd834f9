"""Functions that a deployment has broken stop nothing else of the tenants that published them."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from uuid import UUID

import pytest
from django.core.checks import run_checks
from django.core.management import call_command

from mcphost.catalogue import compiling, kinds, selectors
from mcphost.catalogue.seeding import publish_functions
from mcphost.console.primitives.form import author_texts
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import PythonKind
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import create_tenant
from tests.catalogue.memory_kind import ACTOR
from tests.kinds.python.broken_files import FILES, FUNCTIONS, GOOD, write_all
from tests.tool_modules import restored_modules

pytestmark = pytest.mark.django_db

BEFORE = """
from mcphost.sdk import tool

@tool(name="{name}-beside")
def beside() -> str:
    '''Return a text.'''
    return ""

@tool(name="{name}")
def bad() -> str:
    '''Return a text.'''
    return ""
"""


def load(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start with the functions of a folder, as another deployment does."""
    kind = PythonKind()
    kind.configure(folder)
    monkeypatch.setitem(kinds.KINDS, "python", kind)
    compiling.forget_all()
    selectors.forget_all()


@pytest.fixture
def tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UUID]:
    """A tenant that published functions of all files, before the files got their mistakes."""
    with restored_modules():
        before, after = tmp_path / "before", tmp_path / "after"
        before.mkdir()
        after.mkdir()
        for name in (*FUNCTIONS, *FILES):
            (before / f"{name}.py").write_text(BEFORE.format(name=name))
        (before / "zz_good.py").write_text(GOOD)
        load(before, monkeypatch)
        tenant = create_tenant("acme", TenantFields(title="Acme"), actor=ACTOR).id
        rows = publish_functions(tenant, [name for name, _ in kinds.functions()], ACTOR)
        assert len(rows) == 2 * (len(FUNCTIONS) + len(FILES)) + 1
        write_all(after)
        load(after, monkeypatch)
        yield tenant


def test_every_page_and_command_serves_working_tools_and_names_the_broken_ones(
    tenant: UUID,
) -> None:
    works = {"good", *(f"{name}-beside" for name in FUNCTIONS)}
    broken = {*FUNCTIONS, *FILES, *(f"{name}-beside" for name in FILES)}
    offering = selectors.offering(tenant)
    assert {tool.name for tool in offering.tools} == works
    assert {problem.name for problem in offering.problems} == broken
    messages = {problem.name: problem.message for problem in offering.problems}
    for name in FILES:
        assert f"{name}.py" in messages[name]
    tenants = Tenant.objects.filter(pk=tenant)
    assert {problem.name for problem in selectors.problems_of(tenants)} == broken
    assert len(selectors.primitives(tenants)) == len(works | broken)
    functions = selectors.functions(tenant)
    assert {row.reference for row in functions if row.in_code} == {
        name for name, _ in kinds.functions()
    }
    assert set(author_texts(selectors.granted_functions(tenant, PrimitiveType.TOOL))) == {
        row.reference for row in functions if row.in_code
    }
    out = StringIO()
    call_command("tools", "list", "acme", stdout=out)
    rows = [line.split("\t") for line in out.getvalue().splitlines()]
    assert {row[2] for row in rows if "NOT SERVED" in row[-1]} == broken
    warned = {message.id: message.msg for message in run_checks(databases=["default"])}
    assert {"mcphost.catalogue.W001", "mcphost.catalogue.W002"} <= warned.keys()
    (published,) = publish_functions(tenant, ["zz_good.good", "postponed.beside"], ACTOR)
    assert published.name == "beside"


def test_one_unpublishable_function_does_not_stop_the_publication_of_others(globex, shelf, caplog):
    shelf.put("demo.add", description="")
    shelf.put("demo.clock", name="no name")
    rows = publish_functions(globex, ["demo.add", "demo.clock", "demo.echo"], ACTOR)
    assert [row.name for row in rows] == ["echo"]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the function demo.add is not published",
        "the function demo.clock is not published",
    ]
    shelf.put("demo.add")
    assert [row.name for row in publish_functions(globex, ["demo.add"], ACTOR)] == ["add"]
