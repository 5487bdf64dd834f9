"""Tests of the two tables of scopes and permissions, for every pair."""

import pytest

from mcphost.tenants.roles import (
    READING,
    STAFF_PERMISSIONS,
    Audience,
    Permission,
    Role,
    audience_of,
    is_scope,
    may_hold,
    roles_with,
)

HOLDS = {
    # scope:          owner operator auditor member
    "mcp:list": (True, True, True, True),
    "mcp:call": (True, True, True, True),
    "mcp:update_work_item": (True, True, True, True),
    "mcp:a.b-c": (True, True, True, True),
    "api:read": (True, True, True, False),
    "api:write": (True, True, False, False),
    "api:everything": (False, False, False, False),
    "mcp:*": (False, False, False, False),
    "admin:all": (False, False, False, False),
    "": (False, False, False, False),
}

HAS = {
    # permission:                 owner operator auditor member
    Permission.VIEW_TOOLS: (True, True, True, False),
    Permission.EDIT_TOOLS: (True, True, False, False),
    Permission.VIEW_RECORDS: (True, True, True, False),
    Permission.VIEW_PAYLOADS: (False, False, True, False),
    Permission.MANAGE_MEMBERS: (True, False, False, False),
    Permission.MANAGE_TOKENS: (True, False, False, False),
    Permission.MANAGE_TENANT: (True, False, False, False),
    Permission.MANAGE_TASKS: (True, True, False, False),
    Permission.CANCEL_CALLS: (True, True, False, False),
    Permission.MANAGE_SECRETS: (True, True, False, False),
    Permission.GRANT_FUNCTIONS: (False, False, False, False),
    Permission.MANAGE_KEYS: (False, False, False, False),
}

COLUMNS = (Role.OWNER, Role.OPERATOR, Role.AUDITOR, Role.MEMBER)


@pytest.mark.parametrize(
    ("role", "scope", "held"),
    [
        (role, scope, held)
        for scope, row in HOLDS.items()
        for role, held in zip(COLUMNS, row, strict=True)
    ],
)
def test_a_role_may_have_exactly_the_scopes_of_the_table(
    role: Role, scope: str, held: bool
) -> None:
    assert may_hold(role, scope) is held


@pytest.mark.parametrize("permission", Permission)
def test_a_permission_belongs_to_exactly_the_roles_of_the_table(permission: Permission) -> None:
    expected = {role for role, has in zip(COLUMNS, HAS[permission], strict=True) if has}
    assert roles_with(permission) == expected


def test_the_tables_of_this_test_are_complete() -> None:
    assert set(HAS) == set(Permission)
    assert set(COLUMNS) == set(Role)


def test_staff_have_every_permission_except_viewing_payloads() -> None:
    assert set(Permission) - STAFF_PERMISSIONS == {Permission.VIEW_PAYLOADS}


def test_reading_permissions_are_exactly_the_view_permissions() -> None:
    assert {str(permission) for permission in READING} == {
        name for name in map(str, Permission) if name.startswith("view_")
    }


@pytest.mark.parametrize(
    "text", ["mcp:", "mcp:two words", "mcp:" + "x" * 65, "mcp:a\n", "MCP:list", "api:", "mcp"]
)
def test_text_that_is_not_a_scope_has_no_audience(text: str) -> None:
    assert not is_scope(text)
    with pytest.raises(ValueError, match="is not a scope"):
        audience_of(text)


def test_a_scope_determines_its_audience() -> None:
    assert audience_of("mcp:echo") is Audience.MCP
    assert audience_of("api:read") is Audience.API
