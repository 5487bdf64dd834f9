"""Tests that every service asks for the user's right again, in the transaction of its change.

A user may lose it between the request, which a page admitted, and the change. A service that is not
among the cases, and not exempt with a reason, fails the first test on the day it is written.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from mcphost.tenants.errors import UnknownTenantError
from mcphost.tenants.models import Membership, Tenant
from mcphost.tenants.roles import Role
from tests.console.rights.services import (
    CASES,
    CLOSED,
    DEACTIVATED,
    DEMOTED,
    EXEMPT,
    REMOVED,
    UNSTAFFED,
    Case,
    Scene,
)
from tests.console.url_walk import undone, writes

ROOT = Path(__file__).resolve().parents[3] / "mcphost"
AUDIT = "mcphost.audit.services"
ACTS = re.compile(r"Actor|mcphost\.audit")
"""A module without this has no function that acts: parsing only the others is quick."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _take(user: User, loss: str, scene: Scene) -> None:
    """Take a right away, whatever the services would say to that."""
    account, membership = User.objects.filter(pk=user.pk), Membership.objects.filter(user=user)
    LOSSES[loss](account, membership, Tenant.objects.filter(pk=scene.id))


LOSSES: Mapping[str, Callable[[Any, Any, Any], object]] = {
    REMOVED: lambda account, membership, tenant: membership.delete(),
    DEMOTED: lambda account, membership, tenant: membership.update(role=Role.MEMBER.value),
    DEACTIVATED: lambda account, membership, tenant: account.update(is_active=False),
    UNSTAFFED: lambda account, membership, tenant: account.update(is_staff=False),
    CLOSED: lambda account, membership, tenant: tenant.update(closed_at=timezone.now()),
}


def _rows(statements: list[str]) -> dict[str, list[str]]:
    """Return all rows of the tables that the statements name: of ours, and of the accounts."""
    models = [model for model in apps.get_models() if model.__module__.startswith("mcphost.")]
    named = "\n".join(statements)
    return {
        model._meta.db_table: sorted(map(repr, model._default_manager.values_list()))
        for model in [*models, User]
        if model._meta.db_table in named
    }


def _acts_as_it_should(case: Case, loss: str, scene: Scene) -> bool:
    """Whether a user who lost the right is refused and changes nothing, and any other is not."""
    # Staff have the right in every tenant, until they are no longer staff.
    user = getattr(scene.cast, "staff" if loss == UNSTAFFED else case.person).user
    act = case.prepare(scene, user)
    if loss:
        _take(user, loss, scene)
    with undone():
        with writes() as statements:
            done = _is_done(act)
        after = _rows(statements)
    return done == (after != _rows(statements)) == (not loss)


def _is_done(act: Callable[[], object]) -> bool:
    try:
        return act() is not False
    except (PermissionDenied, UnknownTenantError):
        return False


@pytest.mark.django_db
@pytest.mark.parametrize("package", sorted({case.name.split(".")[0] for case in CASES}))
def test_a_permission_lost_in_the_meantime_refuses_the_change(cast, acme, package):
    scene, faults = Scene(cast, acme), []
    for case in CASES:
        for loss in ("", *case.losses) if case.name.startswith(f"{package}.") else ():
            with undone():
                if not _acts_as_it_should(case, loss, scene):
                    faults.append(f"{case.name} by {case.person}: {loss or 'not refused'}")
    assert faults == []


def _functions() -> Iterator[tuple[str, str, Function, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if "migrations" in path.parts or not ACTS.search(text):
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(text)
        for node in tree.body:
            if isinstance(node, Function):
                yield module, node.name, node, tree


@cache
def _names_of_the_record(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return the names of functions of the record in a module, and of its module of services."""
    functions, modules = set(), set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                if node.module == AUDIT:
                    functions.add(name)
                elif f"{node.module}.{alias.name}" == AUDIT:
                    modules.add(name)
    return functions - {name for name in functions if name.isupper()}, modules


def _acts(function: Function, tree: ast.Module) -> bool:
    """Whether a function takes an actor, names a user as one, or writes an entry."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if any(each.annotation and "Actor" in ast.unparse(each.annotation) for each in arguments):
        return True
    functions, modules = _names_of_the_record(tree)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in functions:
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = node.value.id
            if owner in modules or (owner, node.attr) == ("Actor", "person"):
                return True
    return False


def _services() -> set[str]:
    """Return the public functions that act, also by way of private ones of their modules."""
    bodies = {(module, name): (node, tree) for module, name, node, tree in _functions()}
    acting = {key for key, (node, tree) in bodies.items() if _acts(node, tree)}
    named = {
        (module, name): {(module, part.id) for part in ast.walk(node) if isinstance(part, ast.Name)}
        for (module, name), (node, _) in bodies.items()
    }
    while more := {key for key, names in named.items() if key not in acting and names & acting}:
        acting |= more
    return {f"{module}.{name}" for module, name in acting if not name.startswith("_")}


def test_every_service_that_acts_for_a_user_is_tested_or_exempt_with_a_reason() -> None:
    walked = {case.name for case in CASES}
    assert walked & EXEMPT.keys() == set()
    services = _services()
    assert services - walked - EXEMPT.keys() == set()
    assert (walked | EXEMPT.keys()) - services == set()
