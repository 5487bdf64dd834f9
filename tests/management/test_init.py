"""`manage.py init`."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from mcphost import home
from mcphost.audit.models import Entry
from mcphost.catalogue import selectors as catalogue
from mcphost.feed.models import Change
from mcphost.identity import selectors as identity
from mcphost.identity.models import Token
from mcphost.tenants import selectors as tenants
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS, Audience, Role
from mcphost.vault.models import RingKey
from tests.plugins.canaries import holds_a_secret

pytestmark = pytest.mark.django_db


def _init(**options: Any) -> str:
    out = StringIO()
    call_command("init", stdout=out, **options)
    return out.getvalue()


def _everything() -> list[int]:
    rows = (User, Tenant, Membership, Token, RingKey, Entry, Change)
    return [model._default_manager.count() for model in rows]


def test_alone_it_makes_an_administrator_and_a_key_and_no_tenant(data: home.Home) -> None:
    said = _init()
    admin = User.objects.get()
    assert (admin.username, admin.is_superuser) == ("admin", True)
    assert admin.check_password(home.read(data.admin_password))
    assert data.admin_password.stat().st_mode & 0o777 == 0o600
    assert RingKey.objects.count() == 1
    assert not Tenant.objects.exists()
    assert said == f"Ready in {data.path}\n"


def test_the_demo_tenant_has_tools_an_owner_an_auditor_and_a_token_for_all_of_it(
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
    password = home.read(data.admin_password)
    assert User.objects.get(username="auditor").check_password(password)
    assert not holds_a_secret(said)
    assert tenants.public_tenant("demo") is None


def test_the_conformance_tenant_is_open_to_anybody_and_has_the_suites_tools(
    data: home.Home,
) -> None:
    _init(conformance=True)
    tenant = tenants.public_tenant("conformance")
    assert tenant is not None
    tools = {tool.name for tool in catalogue.offering(tenant.id).tools}
    assert {"test_simple_text", "test_input_required_result_elicitation"} <= tools
    assert [row.slug for row in Tenant.objects.all()] == ["conformance"]
    assert not data.demo_token.exists()


def test_running_it_again_changes_nothing(data: home.Home) -> None:
    _init(demo=True, conformance=True)
    before = _everything()
    secrets = data.admin_password.read_text(), data.demo_token.read_text()
    _init(demo=True, conformance=True)
    assert _everything() == before
    assert (data.admin_password.read_text(), data.demo_token.read_text()) == secrets


def test_a_password_file_of_an_earlier_database_gives_way(data: home.Home) -> None:
    data.admin_password.write_text("of another database\n")
    _init()
    assert User.objects.get().check_password(home.read(data.admin_password))


def test_a_lost_token_file_is_answered_with_another_token(data: home.Home) -> None:
    _init(demo=True)
    first = home.read(data.demo_token)
    data.demo_token.unlink()
    _init(demo=True)
    assert home.read(data.demo_token) not in ("", first)
