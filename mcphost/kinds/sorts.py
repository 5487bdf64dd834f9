"""What a server offers its clients: the primitives of the protocol (spec: server/index)."""

from enum import StrEnum


class Sort(StrEnum):
    """Which primitive something is. A template describes many resources by one URI template."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"

    @property
    def has_uri(self) -> bool:
        """Whether clients ask for it by URI rather than by name."""
        return self in (Sort.RESOURCE, Sort.TEMPLATE)
