"""A tenant with a secret, made by the services."""

from typing import Any
from uuid import UUID

from mcphost.audit.records import Actor
from mcphost.vault.secrets.services import create_secret

OLGA = Actor.system("olga")
VALUE = "a-value-of-a-secret"
OTHER = "another-value-of-it"
NAME = "weather_key"


def stored(tenant: UUID, name: str = NAME, value: str = VALUE, **rules: Any) -> UUID:
    """Store a secret that may go to api.example.com in a header; return its id."""
    rules = {"hosts": ["api.example.com"], "places": ["header"], **rules}
    return create_secret(tenant, name, value, **rules, actor=OLGA)
