"""What every kind of tool is to the rest of the platform.

A kind turns a configuration (a catalogue row's JSON) into something that can be listed and run.
It says what it can do, offers what there is to choose from, and reports what is wrong with its own
surroundings. A new kind is a folder here and one line in `mcphost.catalogue.kinds`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from mcphost.runtime.program import Program
from mcphost.runtime.schema import Problem


class KindError(Exception):
    """A configuration that cannot be compiled. `problems` are sentences by field ("" for none)."""

    def __init__(self, problems: Mapping[str, list[str]]) -> None:
        self.problems = problems
        super().__init__(" ".join(text for texts in problems.values() for text in texts))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A configuration made ready, with what its author says of it; operators may say otherwise.

    `name` is what the author calls the tool. Texts are empty where the author said nothing.
    `annotations` is the JSON of `ToolAnnotations`. `requires` are client capabilities, dotted,
    without which the tool cannot run at all. `time_limit` is in seconds, per round.
    """

    name: str
    input_schema: Mapping[str, Any]
    program: Program
    output_schema: Mapping[str, Any] | None = None
    title: str = ""
    description: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    author_version: str = ""
    requires: tuple[str, ...] = ()
    time_limit: float | None = None


class Kind(Protocol):
    """One kind of tool.

    `config_model` describes the configuration; `can_ask` says whether its tools may ask the caller
    questions, `can_stream` whether they may report progress and log messages.
    """

    name: str
    label: str
    can_ask: bool
    can_stream: bool
    config_model: type[BaseModel]

    def compile(self, config: Mapping[str, Any]) -> Compiled:
        """Make a configuration ready. Raises KindError with problems by field."""

    def check(self) -> Sequence[Problem]:
        """What is wrong with the kind's surroundings; nothing of it stops anything else."""

    def choices(self) -> Sequence[tuple[str, str]]:
        """What a configuration may refer to: (value, label) pairs, in the order to show them."""
