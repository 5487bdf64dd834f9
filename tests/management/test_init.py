"""`manage.py init`."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings
from django.utils import timezone
from pytest_django import Settings

from mcphost import home
from mcphost.audit.models import Entry
from mcphost.catalogue import compiling, kinds
from mcphost.catalogue import selectors as catalogue
from mcphost.feed.models import Change
from mcphost.identity import selectors as identity
from mcphost.identity.models import Token
from mcphost.management.commands import init
from mcphost.management.commands.up import _account
from mcphost.tenants import selectors as tenants
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Audience, Role
from mcphost.tenants.services import close_tenant
from mcphost.vault.models import RingKey
from tests.cast import ACTOR
from tests.plugins.canaries import holds_a_secret

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's database has its tables: to look for missing ones takes longer than all the rest.
    tests/test_deploy.py starts with an empty one."""
    monkeypatch.setattr(init, "call_command", lambda *_, **__: None)


def _init(**options: Any) -> str:
    out = StringIO()
    call_command("init", stdout=out, **options)
    return out.getvalue()


def _everything() -> list[int]:
    rows = (User, Tenant, Membership, Token, RingKey, Entry, Change)
    return [model._default_manager.count() for model in rows]


def test_init_without_options_creates_an_administrator_and_a_key_and_no_tenant(
    data: home.Home,
) -> None:
    data.admin_password.write_text("of another database\n")
    said = _init()
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser) == ("admin", True)
    assert admin.check_password(home.read(data.admin_password))
    assert data.admin_password.stat().st_mode & 0o777 == 0o600
    assert RingKey.objects.count() == 1
    assert not Tenant.objects.exists()
    assert not data.auditor_password.exists()
    assert said == f"Ready in {data.path}\n"


def test_the_demo_tenant_has_tools_an_owner_an_auditor_and_a_token_also_after_a_second_init(
    data: home.Home,
) -> None:
    said = _init(demo=True)
    found = identity.load(home.read(data.demo_token), Audience.MCP, "demo", timezone.now())
    assert found is not None
    assert found.principal.scopes == {LIST_TOOLS, CALL_TOOLS}
    offering = catalogue.offering(found.principal.tenant)
    assert {"echo", "countdown", "update_work_item", "deploy"} <= {
        tool.name for tool in offering.tools
    }
    assert {prompt.name for prompt in offering.prompts} >= {"plan_trip", "write_invitation"}
    roles = dict(Membership.objects.values_list("user__username", "role"))
    assert roles == {"admin": Role.OWNER, "auditor": Role.AUDITOR}
    auditor = User.objects.get(username="auditor")
    assert auditor.check_password(home.read(data.auditor_password))
    assert not auditor.check_password(home.read(data.admin_password))
    assert data.auditor_password.stat().st_mode & 0o777 == 0o600
    assert not holds_a_secret(said)
    assert tenants.public_tenant("demo") is None
    assert [row.slug for row in Tenant.objects.all()] == ["demo"]
    modules = {reference.partition(".")[0] for reference, _ in kinds.functions()}
    assert modules == {"demo", "demo_asking"}
    _running_it_again_changes_nothing_but_replaces_a_lost_token(data)


def _running_it_again_changes_nothing_but_replaces_a_lost_token(data: home.Home) -> None:
    before = _everything()
    files = data.admin_password, data.auditor_password, data.demo_token
    secrets = [file.read_text() for file in files]
    _init(demo=True)
    assert _everything() == before
    assert [file.read_text() for file in files] == secrets
    first = home.read(data.demo_token)
    data.demo_token.unlink()
    _give(User.objects.get(username="auditor"), "chosen by the auditor")
    _init(demo=True)
    assert home.read(data.demo_token) not in ("", first)
    assert User.objects.get(username="auditor").check_password("chosen by the auditor")


def test_a_closed_demo_is_named_and_the_rest_is_set_up(data: home.Home) -> None:
    _init(demo=True)
    close_tenant(Tenant.objects.get(slug="demo").id, actor=ACTOR)
    before = _everything()
    said = _init(demo=True)
    assert "The tenant demo was closed, and its slug is not used again" in said
    assert f"Ready in {data.path}" in said
    assert _everything() == before


def test_the_conformance_tenant_is_refused_where_the_suites_functions_are_not_loaded(
    data: home.Home,
) -> None:
    with pytest.raises(CommandError, match="Set MCPHOST_CONFORMANCE=1"):
        _init(conformance=True)
    assert not Tenant.objects.exists()


def test_the_conformance_tenant_is_public_and_has_the_suites_tools(
    data: home.Home, suite: None
) -> None:
    _init(conformance=True)
    tenant = tenants.public_tenant("conformance")
    assert tenant is not None
    tools = {tool.name for tool in catalogue.offering(tenant.id).tools}
    named = {"test_simple_text", "test_input_required_result_elicitation", "test_tool_with_task"}
    assert named <= tools
    assert [row.slug for row in Tenant.objects.all()] == ["conformance"]
    assert not data.demo_token.exists()
    before = _everything()
    _init(conformance=True)
    assert _everything() == before
    with override_settings(MCPHOST_CONFORMANCE=False):
        kinds.discover()
        compiling.forget_all()
        of_suite = [row for row in catalogue.functions(tenant.id) if row.granted]
        out = StringIO()
        call_command("tools", "list", "conformance", stdout=out)
    assert {row.in_code for row in of_suite} == {False}
    modules = {row.label.partition(".")[0] for row in of_suite}
    assert modules == {"conformance", "conformance_asking", "conformance_tasks"}
    lines = out.getvalue().splitlines()
    assert len(lines) == len(of_suite)
    assert all("NOT SERVED: There is no tool function 'conformance" in line for line in lines)


def test_an_auditor_with_the_administrators_password_gets_a_new_one_and_the_output_names_it(
    data: home.Home,
) -> None:
    _init(demo=True)
    for times, demo in enumerate((True, False), 1):
        _give(User.objects.get(username="auditor"), home.read(data.admin_password))
        _give(User.objects.get(username="admin"), "one of their own")
        data.auditor_password.unlink()
        said = _init(demo=demo)
        assert str(data.auditor_password) in said
        assert not holds_a_secret(said)
        auditor = User.objects.get(username="auditor")
        assert auditor.check_password(home.read(data.auditor_password))
        assert not auditor.check_password(home.read(data.admin_password))
        assert User.objects.get(username="admin").check_password("one of their own")
        entries = Entry.objects.filter(action="user.password_set", target=str(auditor.pk))
        assert entries.count() == times
        assert _init(demo=demo) == f"Ready in {data.path}\n"


class CountingHasher(MD5PasswordHasher):
    """A hasher that counts what it verifies."""

    verified = 0

    def verify(self, password: str, encoded: str) -> bool:
        CountingHasher.verified += 1
        return super().verify(password, encoded)


def _start(data: home.Home) -> tuple[int, list[str]]:
    """Start as `up` does: how many passwords it hashed, and those that it shows."""
    CountingHasher.verified = 0
    _init(demo=True)
    files = {"admin": data.admin_password, "auditor": data.auditor_password}
    shown = [_account(data, name, file).password for name, file in files.items()]
    return CountingHasher.verified, shown


def test_generated_passwords_are_hashed_at_the_first_start_and_not_at_later_ones(
    data: home.Home, settings: Settings
) -> None:
    settings.PASSWORD_HASHERS = ["tests.management.test_init.CountingHasher"]
    _init(demo=True)
    generated = [home.read(data.admin_password), home.read(data.auditor_password)]
    assert _start(data) == (2, generated)
    assert _start(data) == (0, generated)
    assert data.password_checks.stat().st_mode & 0o777 == 0o600
    assert not holds_a_secret(data.password_checks.read_text())

    _give(User.objects.get(username="admin"), "one of their own")
    assert _start(data) == (1, ["", generated[1]]), "another hash is checked again"
    assert _start(data) == (0, ["", generated[1]])

    _give(User.objects.get(username="admin"), generated[0])
    assert _start(data) == (1, generated)
    data.password_checks.unlink()
    assert _start(data) == (2, generated)

    assert _start(data)[0] == 0
    settings.SECRET_KEY = "another one, of a stranger"
    assert _start(data)[0] == 2, "a result is valid only with the key that it was kept under"


def _give(user: User, password: str) -> None:
    user.set_password(password)
    user.save()
