"""Write a tenant's configuration as a file."""

from typing import Any, Final
from uuid import UUID

from mcphost.catalogue.batches import Basis, read_basis
from mcphost.tenant_file.documents import write
from mcphost.tenant_file.file_format import FORMAT, SECTIONS, primitive_members, setting_members
from mcphost.tenants.selectors import snapshot

_HEAD: Final = """\
# The configuration of a tenant of mcphost. `manage.py tenant plan` shows what a file would change, and
# `manage.py tenant apply` changes it. It has no values of secrets, no tokens and no people.
"""
_PRUNE: Final = "# true: primitives that this file does not name are archived."
_COMMENTS: Final = {
    "tenant": "# Settings. One that is omitted stays as it is.",
    "secrets": (
        "# Secrets that must be stored under Secrets, and where they may be sent. A tool whose secret is\n"
        "# missing stays a draft."
    ),
    "functions": "# Python functions that platform staff grant.",
    "tools": "# Tools, by name. What is omitted has its default; `draft` has edits that are not published.",
    "prompts": "# Prompts, by name.",
    "resources": "# Resources, by name.",
    "templates": "# Resource templates, by name.",
}


def export(tenant_id: UUID) -> str:
    """Return a tenant's file. The same configuration gives the same text. Raises Tenant.DoesNotExist."""
    return text_of(read_basis(tenant_id))


def text_of(basis: Basis) -> str:
    """Return the file of what was read of a tenant."""
    parts = [f"{_HEAD}format: {FORMAT}\n\n{_PRUNE}\nprune: false\n"]
    for section, members in _sections(basis).items():
        parts.append(f"{_COMMENTS[section]}\n{write({section: members})}")
    return "\n".join(parts)


def _sections(basis: Basis) -> dict[str, Any]:
    """Return the sections that have members, each sorted by name."""
    rows = sorted(basis.rows.values(), key=lambda row: row.name)
    sections: dict[str, Any] = {
        "tenant": setting_members(snapshot(basis.tenant).fields),
        "secrets": {
            secret.name: {"hosts": list(secret.rules.hosts), "places": list(secret.rules.places)}
            for secret in sorted(basis.secrets, key=lambda secret: secret.name)
        },
        "functions": sorted(basis.grants),
        **{
            section: {
                row.name: primitive_members(row)
                for row in rows
                if row.primitive_type == primitive_type
            }
            for section, primitive_type in SECTIONS.items()
        },
    }
    return {section: members for section, members in sections.items() if members}
