"""One parsed and checked client message: the input of the rest of the platform."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from mcphost.protocol.revisions import Era


class Meta(NamedTuple):
    """The checked `_meta` of a message (spec: basic/index, "_meta").

    `progress_token` and `log_level` opt in to notifications; None means that none are wanted.
    `client_info` and `capabilities` are self-reported, empty when absent, and never identity.
    `traceparent` is a well-formed W3C trace parent or None.
    """

    progress_token: str | int | None = None
    log_level: str | None = None
    client_info: Mapping[str, Any] = MappingProxyType({})
    capabilities: Mapping[str, Any] = MappingProxyType({})
    traceparent: str | None = None


class Exchange(NamedTuple):
    """A request (`id` is set) or a notification (`id` is None) of a supported revision.

    `params` is as the client sent it, `_meta` included. Its shape has been checked for methods that
    the revision defines. Whether the method is served is not decided yet.
    """

    id: str | int | None
    method: str
    params: dict[str, Any]
    meta: Meta
    era: Era
    revision: str

    @property
    def is_mirrored(self) -> bool:
        """Whether headers repeat values of the body, which only the stateless revision requires."""
        return self.era is Era.MODERN
