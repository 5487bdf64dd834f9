"""What each role may do: which scopes its tokens may hold, and which permissions it has.

Two tables and nothing else. `access.py` is the only reader of permissions that decides anything.
"""

import re
from collections.abc import Mapping
from enum import StrEnum


class Role(StrEnum):
    """What a person is in one tenant. A person has one role per tenant."""

    OWNER = "owner"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    MEMBER = "member"


class Permission(StrEnum):
    """What a person may do in the admin and the API."""

    VIEW_TOOLS = "view_tools"
    EDIT_TOOLS = "edit_tools"
    VIEW_RECORDS = "view_records"
    VIEW_PAYLOADS = "view_payloads"
    MANAGE_MEMBERS = "manage_members"
    MANAGE_TOKENS = "manage_tokens"
    MANAGE_TENANT = "manage_tenant"
    GRANT_FUNCTIONS = "grant_functions"
    MANAGE_KEYS = "manage_keys"


class Audience(StrEnum):
    """What a credential is good for: the part of a scope before its colon."""

    MCP = "mcp"
    API = "api"


LIST_TOOLS = "mcp:list"
CALL_TOOLS = "mcp:call"
READ_API = "api:read"
WRITE_API = "api:write"

# `mcp:<name>` is one scope per tool, so its tail has the grammar of a tool's name.
_SCOPE = re.compile(r"mcp:[A-Za-z0-9_.-]{1,64}|api:(?:read|write)")

ROLE_SCOPES: Mapping[Role, frozenset[Audience]] = {
    Role.OWNER: frozenset({Audience.MCP, Audience.API}),
    Role.OPERATOR: frozenset({Audience.MCP, Audience.API}),
    Role.AUDITOR: frozenset({Audience.MCP}),
    Role.MEMBER: frozenset({Audience.MCP}),
}

# Payloads are what people answered: the auditor's alone. An owner who wants to read them appoints
# an auditor, and that leaves an entry.
ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(
        {
            Permission.VIEW_TOOLS,
            Permission.EDIT_TOOLS,
            Permission.VIEW_RECORDS,
            Permission.MANAGE_MEMBERS,
            Permission.MANAGE_TOKENS,
            Permission.MANAGE_TENANT,
        }
    ),
    Role.OPERATOR: frozenset(
        {Permission.VIEW_TOOLS, Permission.EDIT_TOOLS, Permission.VIEW_RECORDS}
    ),
    Role.AUDITOR: frozenset(
        {Permission.VIEW_TOOLS, Permission.VIEW_RECORDS, Permission.VIEW_PAYLOADS}
    ),
    Role.MEMBER: frozenset(),
}

STAFF_PERMISSIONS = frozenset(Permission) - {Permission.VIEW_PAYLOADS}

# What is left of a permission once the tenant is closed: its history can be read, nothing changes.
READING = frozenset({Permission.VIEW_TOOLS, Permission.VIEW_RECORDS, Permission.VIEW_PAYLOADS})


def is_scope(text: str) -> bool:
    """Whether `text` is a scope that a token can hold at all."""
    return _SCOPE.fullmatch(text) is not None


def audience_of(scope: str) -> Audience:
    """What a legal scope is for. Raises ValueError for what is not a scope."""
    if not is_scope(scope):
        raise ValueError(f"{scope!r} is not a scope")
    return Audience(scope.partition(":")[0])


def may_hold(role: Role, scope: str) -> bool:
    """Whether a token of somebody with `role` may hold `scope`; never for what is not a scope."""
    return is_scope(scope) and audience_of(scope) in ROLE_SCOPES[role]


def roles_with(permission: Permission) -> frozenset[Role]:
    """The roles that have a permission."""
    return frozenset(role for role, held in ROLE_PERMISSIONS.items() if permission in held)
