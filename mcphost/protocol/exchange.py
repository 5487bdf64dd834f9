"""One message of a client, opened and checked: what the rest of the platform works with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mcphost.protocol.eras import Era


class Meta(NamedTuple):
    """What the sender says beside the params (spec: basic/index, "_meta").

    `progress_token` and `log_level` opt in to notifications, None means none are wanted.
    `client_info` and `capabilities` are self-reported, empty when absent, and never identity.
    `traceparent` is a well-formed W3C trace parent or None.
    """

    progress_token: str | int | None = None
    log_level: str | None = None
    client_info: Mapping[str, Any] = MappingProxyType({})
    capabilities: Mapping[str, Any] = MappingProxyType({})
    traceparent: str | None = None


class Exchange(NamedTuple):
    """A request (`id` is set) or a notification (`id` is None), of a revision that we speak.

    `params` is as the client sent it, `_meta` included; for a method that the revision defines
    its shape has been checked. Whether the method is served is not decided yet.
    """

    id: str | int | None
    method: str
    params: dict[str, Any]
    meta: Meta
    era: Era
    revision: str

    @property
    def is_mirrored(self) -> bool:
        """Whether headers say what the body says, which only the stateless revision demands."""
        return self.era is Era.MODERN

    @property
    def is_notification(self) -> bool:
        return self.id is None
