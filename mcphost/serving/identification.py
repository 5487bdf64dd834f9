"""How the server names itself to clients."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcphost.tenants.selectors import TenantSnapshot

NAME = "mcphost"
VERSION = "0.1.0"


def server_info(tenant: TenantSnapshot) -> Mapping[str, Any]:
    """The `serverInfo` of a tenant's server: our software's name, under the tenant's title."""
    return _server_info(tenant.title, tenant.icon)


@lru_cache(maxsize=4096)
def _server_info(title: str, icon: str) -> Mapping[str, Any]:
    info: dict[str, Any] = {"name": NAME, "title": title, "version": VERSION}
    if icon:
        info["icons"] = [{"src": icon, "mimeType": icon[5:].partition(";")[0]}]
    return info
