"""`manage.py check --database default`, and `migrate`, report a wrong or missing master key."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DEFAULT_DB_ALIAS, connection

from mcphost.vault.errors import VaultError
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import verify_master_key


@register("mcphost", Tags.database)
def check_master_key(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Report a missing or wrong master key. A database without the vault's tables has no keys."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    tables = connection.introspection.table_names()
    if not {RingKey._meta.db_table, TenantSecret._meta.db_table} <= set(tables):
        return []
    try:
        verify_master_key()
    except VaultError as error:
        return [Error(str(error), id="vault.E001")]
    return []
