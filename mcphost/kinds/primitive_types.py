"""The primitives that a server offers its clients (spec: server/index)."""

from enum import StrEnum


class PrimitiveType(StrEnum):
    """The type of a primitive. A template describes many resources by one URI template."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"

    @property
    def has_uri(self) -> bool:
        """Whether clients request it by URI, not by name."""
        return self in (PrimitiveType.RESOURCE, PrimitiveType.TEMPLATE)
