"""The JSON Schemas that tools register: whether they are legal, and which headers they ask for."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """An argument that clients mirror into the header `Mcp-Param-<name>`.

    `path` is the chain of properties that leads to it from the root of the arguments.
    """

    path: tuple[str, ...]
    name: str
    kind: Literal["string", "integer", "boolean"]
