"""What every kind is to the rest of the platform: how tools, prompts and resources of it run.

A kind turns a configuration (a catalogue row's JSON) into something that can be listed and run.
It says what it can do, offers what there is to choose from, and reports what is wrong with its own
surroundings. A new kind is a folder here and one line in `mcphost.catalogue.kinds`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel

from mcphost.kinds.sorts import Sort
from mcphost.protocol.prompts import PromptArgument
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

    `sort` is what it is; `name` is what the author calls it. Texts are empty where the author said nothing.
    `annotations` is the JSON of `ToolAnnotations`. `requires` are client capabilities, dotted,
    without which it cannot run at all. `time_limit` is in seconds, per round. `uri` is a resource's
    URI or a template's text, `size` a resource's length in bytes where it is known. `completer`
    answers `completion/complete` for a prompt's arguments or a template's variables. `answer_within`
    is how long its questions wait, in seconds; `claims` whether a round that takes in an answer must
    run once only (None: as the annotations say); `unasked` whether it takes answers that were not
    asked for.
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
    sort: Sort = Sort.TOOL
    uri: str = ""
    mime_type: str = ""
    size: int | None = None
    arguments: tuple[PromptArgument, ...] = ()
    completer: Program | None = None
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False


class Kind(Protocol):
    """One kind.

    `sorts` are those that it can make, `can_ask` says whether what it runs may ask the caller questions, `can_stream` whether they may report progress and log messages.
    """

    name: str
    label: str
    sorts: Collection[Sort]
    can_ask: bool
    can_stream: bool

    def config_model(self, sort: Sort) -> type[BaseModel]:
        """What a configuration of that sort consists of."""

    def compile(self, config: Mapping[str, Any], sort: Sort = Sort.TOOL) -> Compiled:
        """Make a configuration ready. Where it says itself what it is, `sort` is not looked at.

        Raises KindError with problems by field.
        """

    def check(self) -> Sequence[Problem]:
        """What is wrong with the kind's surroundings; nothing of it stops anything else."""

    def choices(self) -> Sequence[tuple[str, str]]:
        """What a configuration may refer to: (value, label) pairs, in the order to show them."""
