"""Tests of pages whose user loses the right while the request is under way."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.catalogue import kinds, selectors
from mcphost.catalogue import services as catalogue
from mcphost.catalogue.models import Primitive
from mcphost.console.forms.script_part import START
from mcphost.console.primitives import trials
from mcphost.identity.models import ServiceAccount, Token
from mcphost.tenants.models import Invitation, Membership, Tenant
from mcphost.tenants.roles import Role
from mcphost.vault.models import StoredSecret
from tests.cast import PASSWORD
from tests.console.concurrent_changes import before_the_change
from tests.console.primitives import test_trials
from tests.console.primitives.test_imports import document, imported, with_page
from tests.console.primitives.test_scripts import NEW, form
from tests.console.tenant_data import ACTOR, Things
from tests.console.tenants.test_secrets import NEW_SECRET
from tests.console.url_walk import undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_here")]

Look = Callable[[Mapping[str, Any], str], Mapping[str, list[str]]]
TENANT = "/admin/t/acme/"

LOSSES: Mapping[str, Callable[[User], object]] = {
    "removed": lambda user: Membership.objects.filter(user=user).delete(),
    "demoted": lambda user: Membership.objects.filter(user=user).update(role=Role.MEMBER.value),
    "deactivated": lambda user: User.objects.filter(pk=user.pk).update(is_active=False),
    "tenant closed": lambda user: Tenant.objects.filter(slug="acme").update(
        closed_at=timezone.now()
    ),
}


def _during_inspection(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act while what is to be saved is inspected: a script's module level may compute for seconds."""

    def watched(look: Look) -> Look:
        def inspect(config: Mapping[str, Any], tenant: str) -> Mapping[str, list[str]]:
            act()
            return look(config, tenant)

        return inspect

    for kind, look in list(kinds.INSPECTED.items()):
        monkeypatch.setitem(kinds.INSPECTED, kind, watched(look))  # type: ignore[arg-type]


@pytest.fixture
def inspections(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each inspection of what is saved: whether it ran in a transaction.

    On SQLite a transaction keeps all other connections from writing, those of calls too, and a
    check of a script may take half a minute.
    """
    seen: list[bool] = []
    _during_inspection(monkeypatch, lambda: seen.append(connection.in_atomic_block))
    return seen


@pytest.mark.django_db(transaction=True)
def test_a_script_is_inspected_outside_the_transaction_that_saves_it(operator, acme, inspections):
    operator.post(NEW, form(_publish=""))
    operator.post(NEW, form(name="other"))
    scripts = Primitive.objects.filter(tenant=acme.tenant, kind="script")
    published, draft = scripts.get(name="greet"), scripts.get(name="other")
    assert (published.state, draft.state) == ("published", "draft")
    changed = START.replace("Hello", "Bye")
    for tool, more in ((published, {}), (draft, {"_publish": ""})):
        url = f"{TENANT}tools/{tool.id}/edit/"
        assert operator.post(url, form(name=tool.name, code=changed, **more)).status_code == 302
    assert inspections == [False] * 4


@pytest.mark.django_db(transaction=True)
def test_imported_operations_are_inspected_outside_transactions(operator, acme, inspections):
    first = imported(operator, "GET /orders", "POST /orders", text=document())
    again = imported(operator, "GET /orders", text=with_page())
    assert first.status_code == again.status_code == 302
    assert inspections == [False] * 3


@pytest.mark.parametrize("button", ["_publish", "_save"])
def test_no_script_is_saved_for_a_user_who_lost_the_permission(
    operator, acme, cast, monkeypatch, button
):
    before = Entry.objects.count()
    for lose in LOSSES.values():
        with undone(), monkeypatch.context() as patch:
            _during_inspection(patch, partial(lose, cast.operator.user))
            refused = operator.post(NEW, form(**{button: ""}))
            assert refused.status_code == 403
            assert "you have no access to it" in refused.content.decode()
            assert refused.context["tenant"] is None
            assert not Primitive.objects.filter(kind="script").exists()
            assert Entry.objects.count() == before
            assert "greet" not in [tool.name for tool in selectors.offering(acme.tenant).tools]


CHANGES: Mapping[str, Mapping[str, object]] = {
    "settings/": {"title": "Acme", "outgoing_hosts": "evil.example.com"},
    "members/": {"username": "accomplice", "role": "owner", "days": "7"},
    "members/{member}/role/": {"role": "owner", "confirmed": "on"},
    "tokens/new/": {"owner": "{account}", "name": "late", "scopes": ["mcp:list"]},
    "secrets/new/": NEW_SECRET,
    "tools/new/": {"function": "probe.echo", "name": "late"},
    "tools/{tool}/disable/": {},
    "payloads/{entry}/erase/": {},
}


def _stored(acme: Things) -> tuple[object, ...]:
    return (
        Entry.objects.count(),
        list(Tenant.objects.filter(pk=acme.tenant).values("outgoing_hosts", "title")),
        Invitation.objects.count(),
        list(Membership.objects.filter(user__username="member").values("role", "scopes")),
        ServiceAccount.objects.count(),
        Token.objects.filter(revoked_at=None, connection=None).count(),
        list(StoredSecret.objects.values("name", "version", "hosts")),
        sorted(Primitive.objects.values_list("name", "state")),
    )


def _is_refused(page: Any) -> bool:
    """Whether the page is that of a tenant that does not exist."""
    context = page.context
    return (page.status_code, context["title"], context["tenant"]) == (
        403,
        "Page not available",
        None,
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_an_owner_who_lost_the_role_is_refused(owner, acme, cast, change):
    member = cast.member.user
    token = Token.objects.filter(owner=member)[0].pk
    named = {name: getattr(acme, name) for name in ("account", "secret", "tool", "resource")}
    path = change.format(**named, entry=acme.entry, member=member.pk, token=token)
    fields = {
        name: value.format(**named) if isinstance(value, str) else value
        for name, value in CHANGES[change].items()
    }
    assert owner.get(TENANT + path).status_code in (200, 405), path
    assert _is_refused(owner.post(f"/admin/t/unknown/{path}", fields))
    before = _stored(acme)
    for lose in LOSSES.values():
        with undone():
            with before_the_change(partial(lose, cast.owner.user)):
                assert _is_refused(owner.post(TENANT + path, fields))
            assert _stored(acme) == before


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("functions/change/", {"verb": "grant", "function": "probe.echo"}),
    ],
)
def test_staff_cannot_change_a_tenant_closed_in_the_meantime(staff, acme, cast, path, fields):
    Membership.objects.filter(tenant=acme.tenant, user=cast.owner.user).delete()
    with before_the_change(partial(LOSSES["tenant closed"], cast.staff.user)):
        assert _is_refused(staff.post(TENANT + path, fields))


def test_a_user_deactivated_in_the_meantime_cannot_change_the_password(cast, operator):
    user = cast.operator.user
    strong = "a-much-longer-one-of-mine"
    sent = {"present": PASSWORD, "password": strong, "again": strong}
    with before_the_change(lambda: User.objects.filter(pk=user.pk).update(is_active=False)):
        refused = operator.post("/admin/password/", sent)
    assert refused.status_code == 403
    assert not User.objects.get(pk=user.pk).check_password(strong)


def _shown(client: Client, url: str) -> dict[str, str]:
    return {**client.get(url).context["bound"]}


def test_a_roll_back_does_not_serve_a_tool_disabled_in_the_meantime(operator, acme):
    row = selectors.primitive(acme.tool)
    catalogue.update(row.id, replace(row.fields, title="B"), ACTOR)
    catalogue.publish(row.id, ACTOR)
    serve = f"{TENANT}tools/{acme.tool}/versions/{acme.version}/serve/"
    shown = _shown(operator, serve)
    catalogue.disable(acme.tool, ACTOR)
    refused = operator.post(serve, shown)
    text = refused.content.decode()
    assert "Nothing was changed. canary-acme-tool was changed meanwhile by another user" in text
    assert "It is disabled, and will be served again." in text
    assert Primitive.objects.get(pk=acme.tool).state == "disabled"
    # The state was shown: confirming again serves it.
    operator.post(serve, refused.context["bound"])
    assert Primitive.objects.get(pk=acme.tool).state == "published"


@pytest.mark.parametrize("way", ["the tool's page", "the list", "the form"])
def test_a_publication_does_not_serve_a_tool_disabled_in_the_meantime(operator, acme, way):
    row = selectors.primitive(acme.tool)
    url = f"{TENANT}tools/{acme.tool}/"
    edit = operator.get(f"{url}edit/").context
    changed = replace(row.fields, title="B")
    before = catalogue.update(row.id, changed, ACTOR)
    chosen = f"{row.id}:{before.fingerprint}:{before.state.value}"
    assert chosen in operator.get(f"{TENANT}tools/").content.decode()
    assert 'name="was" value="published"' in operator.get(url).content.decode()
    read = operator.get(f"{url}edit/").context
    sent = {
        "the tool's page": (
            f"{url}publish/",
            {"based_on": before.fingerprint, "was": before.state.value},
        ),
        "the list": (f"{TENANT}tools/bulk/", {"verb": "publish", "chosen": chosen}),
        "the form": (
            f"{url}edit/",
            {
                "name": row.name,
                "function": "probe.echo",
                "title": "C",
                "based_on": read["based_on"],
                "was": read["was"],
                "_publish": "",
            },
        ),
    }
    assert edit["was"] == "published"
    catalogue.disable(acme.tool, ACTOR)
    path, fields = sent[way]
    text = operator.post(path, fields, follow=True).content.decode()
    assert "was changed meanwhile by another user" in text
    assert Primitive.objects.get(pk=acme.tool).state == "disabled"
    assert not Entry.objects.filter(action="tool.published", facts__number=2).exists()


def test_enabling_serves_only_the_version_that_the_page_showed(operator, acme):
    catalogue.disable(acme.tool, ACTOR)
    row = selectors.primitive(acme.tool)
    url = f"{TENANT}tools/{acme.tool}/"
    assert f'name="based_on" value="{row.version}"' in operator.get(url).content.decode()
    changed = replace(row.fields, title="B")
    catalogue.update(row.id, changed, ACTOR)
    catalogue.publish(row.id, ACTOR)
    catalogue.disable(row.id, ACTOR)
    text = operator.post(f"{url}enable/", {"based_on": row.version}, follow=True).content.decode()
    assert "was changed meanwhile by another user" in text
    assert Primitive.objects.get(pk=acme.tool).state == "disabled"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", ["removed", "demoted", "deactivated"])
def test_no_trial_runs_for_a_user_who_lost_the_permission(operator, acme, cast, monkeypatch, loss):
    arguments = test_trials.sent(operator.post(test_trials.TRY, test_trials.form()))
    before, compile_draft = Entry.objects.count(), trials.compile_draft

    def late(*rest: Any) -> Any:
        LOSSES[loss](cast.operator.user)
        return compile_draft(*rest)

    monkeypatch.setattr(trials, "compile_draft", late)
    fields = {**arguments, "_run": "1", "arguments-value-item": "tea"}
    refused = operator.post(test_trials.TRY, fields)
    assert refused.status_code == 403
    assert trials.NO_ACCESS in refused.content.decode()
    assert Entry.objects.count() == before
