"""The scopes that each role's tokens may hold, and the permissions that each role has.

Only `access.py` uses the permissions to decide anything.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum


class Role(StrEnum):
    """The role of a user in one tenant. A user has one role per tenant."""

    OWNER = "owner"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    MEMBER = "member"


class Permission(StrEnum):
    """An action that a user may be allowed in the console and the API."""

    VIEW_TOOLS = "view_tools"
    EDIT_TOOLS = "edit_tools"
    VIEW_RECORDS = "view_records"
    VIEW_PAYLOADS = "view_payloads"
    MANAGE_MEMBERS = "manage_members"
    MANAGE_TOKENS = "manage_tokens"
    MANAGE_TENANT = "manage_tenant"
    MANAGE_TASKS = "manage_tasks"
    CANCEL_CALLS = "cancel_calls"
    MANAGE_SECRETS = "manage_secrets"
    GRANT_FUNCTIONS = "grant_functions"
    MANAGE_KEYS = "manage_keys"


class Audience(StrEnum):
    """What a credential can be used for: the part of a scope before its colon."""

    MCP = "mcp"
    API = "api"


LIST_TOOLS = "mcp:list"
CALL_TOOLS = "mcp:call"
READ_API = "api:read"
WRITE_API = "api:write"

COMMON_SCOPES = frozenset({LIST_TOOLS, CALL_TOOLS})
"""The scopes that every member's own tokens may hold."""

# `mcp:<name>` is one scope per tool, so the part after the colon has the grammar of a tool's name.
_SCOPE = re.compile(r"mcp:[A-Za-z0-9_.-]{1,64}|api:(?:read|write)")

API_SCOPES: Mapping[Role, frozenset[str]] = {
    Role.OWNER: frozenset({READ_API, WRITE_API}),
    Role.OPERATOR: frozenset({READ_API, WRITE_API}),
    Role.AUDITOR: frozenset({READ_API}),
    Role.MEMBER: frozenset(),
}
"""The scopes of the API that each role's tokens may hold. All roles may hold those of MCP."""

# Payloads are what people answered, so only auditors may read them. An owner who wants to read them
# has to appoint an auditor, which is recorded in an entry.
ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.OWNER: frozenset(
        {
            Permission.VIEW_TOOLS,
            Permission.EDIT_TOOLS,
            Permission.VIEW_RECORDS,
            Permission.MANAGE_MEMBERS,
            Permission.MANAGE_TOKENS,
            Permission.MANAGE_TENANT,
            Permission.MANAGE_TASKS,
            Permission.CANCEL_CALLS,
            Permission.MANAGE_SECRETS,
        }
    ),
    Role.OPERATOR: frozenset(
        {
            Permission.VIEW_TOOLS,
            Permission.EDIT_TOOLS,
            Permission.VIEW_RECORDS,
            Permission.MANAGE_TASKS,
            Permission.CANCEL_CALLS,
            Permission.MANAGE_SECRETS,
        }
    ),
    Role.AUDITOR: frozenset(
        {Permission.VIEW_TOOLS, Permission.VIEW_RECORDS, Permission.VIEW_PAYLOADS}
    ),
    Role.MEMBER: frozenset(),
}

STAFF_PERMISSIONS = frozenset(Permission) - {Permission.VIEW_PAYLOADS}

# The permissions that remain once a tenant is closed: its history can be read, not changed.
READING = frozenset({Permission.VIEW_TOOLS, Permission.VIEW_RECORDS, Permission.VIEW_PAYLOADS})


def is_scope(text: str) -> bool:
    """Return whether `text` is a valid scope."""
    return _SCOPE.fullmatch(text) is not None


def audience_of(scope: str) -> Audience:
    """Return the audience of a scope. Raises ValueError for a text that is not a scope."""
    if not is_scope(scope):
        raise ValueError(f"{scope!r} is not a scope")
    return Audience(scope.partition(":")[0])


def may_hold(role: Role, scope: str) -> bool:
    """Return whether a token of a user with `role` may hold `scope`; False if it is no scope."""
    if not is_scope(scope):
        return False
    return audience_of(scope) is Audience.MCP or scope in API_SCOPES[role]


def may_take(role: Role, scope: str, granted: Iterable[str]) -> bool:
    """Return whether a user with `role` may give `scope` to their own token.

    A tool requires a scope of its own (`mcp:<name>`) to exclude most members. So members and
    auditors may take such a scope only if an owner `granted` it to them. Users who may edit tools
    decide themselves which scopes a tool requires. A scope of the API gives no more than the role.
    """
    if not may_hold(role, scope):
        return False
    if scope in COMMON_SCOPES or scope in API_SCOPES[role]:
        return True
    return Permission.EDIT_TOOLS in ROLE_PERMISSIONS[role] or scope in granted


def roles_with(permission: Permission) -> frozenset[Role]:
    """Return the roles that have a permission."""
    return frozenset(
        role for role, permissions in ROLE_PERMISSIONS.items() if permission in permissions
    )
