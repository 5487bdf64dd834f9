"""`manage.py tenant`, and the file that its page of the documentation shows."""

import io
import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command

from mcphost.audit.models import Entry
from mcphost.catalogue import selectors
from mcphost.tenants.services import close_tenant
from tests.tenant_file.conftest import ACTOR, new_tenant, scripts, store_secret

pytestmark = pytest.mark.django_db

PAGE = (Path(__file__).parents[2] / "docs" / "tenant-file.md").read_text()


def example(language: str) -> str:
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(block)


def run(*words: str) -> str:
    out = StringIO()
    call_command("tenant", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def documented(tmp_path: Path) -> str:
    """The path of a file with the documented example."""
    path = tmp_path / "orders.yaml"
    path.write_text(example("yaml"))
    return str(path)


def test_the_documented_file_has_the_documented_plan(db: None, documented: str) -> None:
    tenant = new_tenant("orders")
    expected = example("text").splitlines()
    lines = run("plan", "orders", documented).splitlines()
    assert lines[0] == "tenant.orders: updated (outgoing_hosts)"  # its title is its slug's
    assert lines[1:-1] == expected[1:-1]
    assert lines[-1].startswith("2 changes. Digest of this plan: ")
    assert not Entry.objects.filter(tenant=tenant, action="tool.created").exists()


def test_a_file_is_applied_again_once_its_secret_is_stored(db: None, documented: str) -> None:
    tenant = new_tenant("orders")
    assert run("apply", "orders", documented).endswith("Applied 2 changes.\n")
    store_secret(tenant, "orders_key")
    assert run("apply", "orders", documented) == (
        "tools.read_order: published\nApplied 1 changes.\n"
    )
    assert run("apply", "orders", documented) == "Nothing to change.\n"
    (tool,) = selectors.offering(tenant).tools
    assert tool.name == "read_order"
    assert {row.actor_label for row in Entry.objects.filter(action="tenant.applied")} == {
        "manage.py tenant"
    }


def test_the_command_checks_as_many_scripts_as_the_file_has(
    acme: UUID, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcphost.sandbox.check_slots.MAX_PER_MINUTE", 2)
    path = tmp_path / "scripts.yaml"
    path.write_bytes(scripts(4))
    assert run("apply", "acme", str(path)).endswith("Applied 4 changes.\n")


def test_an_export_is_a_file_that_changes_nothing(
    acme: UUID, documented: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("apply", "acme", documented)
    text = run("export", "acme")
    assert text.startswith("# The configuration of a tenant of mcphost.")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert "Nothing to change." in run("plan", "acme", "-")


def test_a_digest_of_another_plan_is_refused(acme: UUID, documented: str) -> None:
    digest = run("plan", "acme", documented).split()[-1]
    with pytest.raises(CommandError, match="has changed since this plan was made"):
        run("apply", "acme", documented, "--digest", digest[::-1])
    assert "Applied" in run("apply", "acme", documented, "--digest", digest)


def test_refusals_are_errors_in_words(acme: UUID, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("format: 1\ntools:\n  a: 5\n")
    with pytest.raises(CommandError, match=r"cannot be applied:\nline 3: tools.a: This must be a"):
        run("apply", "acme", str(bad))
    with pytest.raises(CommandError, match="cannot be read: No such file"):
        run("plan", "acme", str(tmp_path / "none.yaml"))
    with pytest.raises(CommandError, match="there is no open tenant 'nothing'"):
        run("export", "nothing")
    close_tenant(acme, actor=ACTOR)
    with pytest.raises(CommandError, match="there is no open tenant 'acme'"):
        run("export", "acme")


def test_what_is_not_in_the_file_is_said(acme: UUID, documented: str, tmp_path: Path) -> None:
    run("apply", "acme", documented)
    empty = tmp_path / "empty.yaml"
    empty.write_text("format: 1\n")
    assert run("plan", "acme", str(empty)) == (
        "Not in the file, and kept: tools.read_order\nNothing to change.\n"
    )
