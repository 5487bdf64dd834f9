"""Tests that a service waits for a removal of its user's right that has begun, and then refuses."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import connection, connections, transaction
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.console.users import changes
from mcphost.console.users.changes import PersonFields
from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Role
from mcphost.tenants.services import close_tenant, remove_member, set_member
from tests.cast import ACTOR
from tests.console.rights.services import CASES, REMOVED, UNSTAFFED, Case, Scene

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 30
WAITING = "SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
REPRESENTATIVE = frozenset(
    {
        "catalogue.services.publish",
        "catalogue.documents.store_document",
        "console.records.entries.erase_payload", "console.records.filter_store.save",
        "identity.services.issue",
        "serving.execution.cancelling.cancel",
        "serving.execution.links.confirm_link", "tenants.invitations.invite",
        "tenants.services.update_tenant", "tenants.services.set_member",
        "vault.lifecycle.rotate", "vault.secrets.services.create_secret",
        "console.users.changes.set_password",
    }
)  # fmt: skip


def _race(take: Callable[[], object], act: Callable[[], object]) -> object:
    """Take a right away, and act in another thread before that is committed; return its result.

    False for a refusal. On SQLite the other transaction cannot begin before the commit.
    """
    begun = threading.Event()

    def announce(execute: Any, sql: str, *rest: Any) -> Any:
        begun.set()
        return execute(sql, *rest)

    def run() -> object:
        try:
            with connection.execute_wrapper(announce):
                return act()
        except (PermissionDenied, UnknownTenantError):
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            take()
            future = pool.submit(run)
            assert begun.wait(SECONDS)
            if connection.vendor == "postgresql":
                _until(_is_waited_for)
        return future.result(SECONDS)


def _until(condition: Callable[[], bool]) -> None:
    end, pause = time.monotonic() + SECONDS, threading.Event()
    while not condition():
        assert time.monotonic() < end, "the service did not wait for the removal"
        pause.wait(0.02)


def _is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def _removal(scene: Scene, user: User, case: Case) -> Callable[[], object]:
    """How the product takes the right of the case's person away."""
    if UNSTAFFED in case.losses and REMOVED not in case.losses:
        return lambda: changes.update(user, PersonFields(is_staff=False), ACTOR)
    if REMOVED not in case.losses:
        return lambda: changes.update(user, PersonFields(is_active=False), ACTOR)
    # The owner is not the last one.
    auditor = scene.cast.auditor.user
    set_member(scene.id, auditor, Role.OWNER, actor=ACTOR)
    return lambda: remove_member(scene.id, user, actor=ACTOR)


RACED = [case for case in CASES if case.name in REPRESENTATIVE]


@pytest.mark.parametrize("case", RACED, ids=lambda case: f"{case.name} by {case.person}")
def test_a_service_waits_for_a_concurrent_role_removal_and_then_refuses(cast, acme, case):
    scene, user = Scene(cast, acme), getattr(cast, case.person).user
    act, removal = case.prepare(scene, user), _removal(scene, user, case)
    assert _race(removal, act) is False
    # The last entry is of the removal: nothing came after it.
    assert Entry.objects.order_by("id").last().action in ("member.removed", "user.updated")


@pytest.mark.parametrize("name", ["catalogue.services.publish", "tenants.invitations.invite"])
def test_a_service_waits_for_a_concurrent_tenant_closing_and_then_refuses(cast, acme, name):
    (case,) = (case for case in CASES if case.name == name)
    scene, user = Scene(cast, acme), getattr(cast, case.person).user
    closing = partial(close_tenant, scene.id, actor=ACTOR)
    assert _race(closing, case.prepare(scene, user)) is False
    assert Entry.objects.order_by("id").last().action == "tenant.closed"


@pytest.mark.parametrize("path", ["settings/", "members/{member}/scopes/"])
def test_an_edit_and_the_deactivation_of_its_user_do_not_deadlock(cast, acme, owner, path):
    """An edit locks what it compares first: the account must come before the tenant there too."""
    user = cast.owner.user
    set_member(acme.tenant, cast.auditor.user, Role.OWNER, actor=ACTOR)
    url = f"/admin/t/acme/{path.format(member=cast.member.user.pk)}"
    # The account is locked before the edit begins, and the tenants after that.
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            changes.locked_by(ACTOR, user.pk)
            future = pool.submit(_post, owner, url)
            if connection.vendor == "postgresql":
                _until(_is_waited_for)
            changes.update(user, PersonFields(is_active=False), ACTOR)
        status = future.result(SECONDS)
    assert status in (302, 403)  # 302 to the sign-in, if the request began after that
    assert Tenant.objects.get(pk=acme.tenant).title != "Mine now"
    assert not User.objects.get(pk=user.pk).is_active


def _post(client: Client, url: str) -> int:
    try:
        return client.post(url, {"title": "Mine now", "scopes": []}).status_code
    finally:
        connections.close_all()
