"""Tests of the first steps of a tenant, until its first call has arrived."""

import pytest
from django.test import Client

from mcphost.catalogue import kinds
from mcphost.catalogue import services as catalogue
from mcphost.console.dashboards.first_steps import FirstSteps
from mcphost.identity.models import Connection, Token
from mcphost.identity.oauth.connections import end
from mcphost.runtime.call import Delivery
from mcphost.tenants.models import Tenant
from tests.cast import Cast
from tests.console.dashboards.rows import calls
from tests.console.tenant_data import ACTOR, tool_fields
from tests.oauth import connect, connection_of, make_client

pytestmark = pytest.mark.django_db

PATH = "/admin/t/acme/first-steps/"


@pytest.fixture
def bare(cast: Cast) -> Cast:
    """The cast, without tokens in the tenant under test."""
    Token.objects.filter(tenant=cast.acme.id).delete()
    return cast


def steps(client: Client) -> FirstSteps:
    found: FirstSteps = client.get("/admin/t/acme/").context["steps"]
    return found


def done(client: Client) -> list[bool]:
    return [each.done for each in steps(client).steps]


def add_tool(cast: Cast, *, publish: bool = True) -> None:
    kinds.discover()
    catalogue.grant_function(cast.acme.id, "probe.echo", ACTOR)
    made = catalogue.create(cast.acme.id, tool_fields(), ACTOR)
    if publish:
        catalogue.publish(made.id, ACTOR)


def test_each_first_step_is_completed_by_its_action(bare: Cast, owner: Client) -> None:
    add_tool(bare, publish=False)
    assert done(owner) == [False] * 4
    assert steps(owner).steps[0].title == "Publish a tool"
    catalogue.publish(catalogue.create(bare.acme.id, tool_fields("two"), ACTOR).id, ACTOR)
    assert done(owner) == [True, False, False, False]
    owner.post("/admin/t/acme/connect/", {"name": "laptop"})
    assert done(owner) == [True, True, False, False]
    Token.objects.filter(tenant=bare.acme.id).update(last_used_at="2026-01-01T00:00:00Z")
    assert done(owner) == [True, True, True, False]
    calls(bare.acme.id, 1)
    assert owner.get("/admin/t/acme/").context["steps"] is None


def test_a_connected_app_is_a_client_that_connects(bare: Cast, owner: Client) -> None:
    connect(make_client(), bare.member)
    assert done(owner) == [False, True, False, False]
    Connection.objects.update(last_used_at="2026-01-01T00:00:00Z")
    assert done(owner) == [False, True, True, False]
    end(bare.acme.id, connection_of(bare.member), actor=ACTOR)
    assert done(owner) == [False] * 4


def test_a_public_tenant_needs_no_token(bare: Cast, owner: Client) -> None:
    Tenant.objects.filter(pk=bare.acme.id).update(public=True)
    assert done(owner)[1]
    assert "clients also connect without one" in owner.get("/admin/t/acme/").content.decode()


def test_a_console_trial_is_not_the_first_call(bare: Cast, owner: Client) -> None:
    calls(bare.acme.id, 1, delivery=Delivery.PLAYGROUND)
    assert not done(owner)[3]


@pytest.mark.parametrize(
    ("who", "adds", "makes"),
    [
        ("owner", True, True),
        ("auditor", False, True),
    ],
)
def test_steps_without_permission_name_the_roles_that_have_it(bare, browse, who, adds, makes):
    client = browse(getattr(bare, who))
    tool, token = steps(client).steps[:2]
    assert (bool(tool.url), bool(token.url)) == (adds, makes)
    page = client.get("/admin/t/acme/").content.decode()
    assert ("An operator or an owner of this tenant can do this." in page) is not adds
    for each in (tool, token):
        assert not each.url or client.get(each.url).status_code == 200


def test_the_fragment_reports_the_arrival_of_the_first_call(bare: Cast, owner: Client) -> None:
    before = owner.get(PATH)
    assert before["Cache-Control"].startswith("max-age=0")
    assert f'data-poll="{PATH}"' in before.content.decode()
    assert "<html" not in before.content.decode()
    calls(bare.acme.id, 1, target="<b>echo\u202e", client_name="<i>")
    after = owner.get(PATH).content.decode()
    assert "data-poll" not in after
    assert "The first call has arrived" in after and "4 of 4 done" in after
    assert "&lt;b&gt;echo⟨U+202E⟩" in after and "&lt;i&gt;" in after


def test_the_overview_of_a_new_tenant_has_its_steps_and_nothing_that_is_empty(
    bare: Cast, owner: Client
) -> None:
    page = owner.get("/admin/t/acme/").content.decode()
    assert page.count("c-primary") == 1
    assert "published tools" not in page
    assert "Nothing needs attention" not in page
    add_tool(bare)
    assert "published tool<" in owner.get("/admin/t/acme/").content.decode()
