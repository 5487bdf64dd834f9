"""The interface of a kind: how its tools, prompts and resources are configured and run.

A kind compiles a configuration (a catalogue row's JSON) into something that can be listed and run.
It declares what it can do, lists the values to choose from, and reports problems of its own
environment. A new kind is a folder here and one line in `mcphost.catalogue.kinds`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict

from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptArgument
from mcphost.runtime.program import Program, TaskSupport
from mcphost.runtime.schema import ArgumentProblem


class Strict(BaseModel):
    """A configuration, or a part of one, without unknown fields."""

    model_config = ConfigDict(extra="forbid")


class KindError(Exception):
    """A configuration cannot be compiled. `problems` are sentences by field ("" for no field)."""

    def __init__(self, problems: Mapping[str, list[str]]) -> None:
        self.problems = problems
        super().__init__(" ".join(text for texts in problems.values() for text in texts))


class InspectionBusyError(KindError):
    """A configuration cannot be inspected now, and may be valid. `problems` say so at its field."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled configuration, with the author's descriptions, which operators may override.

    `name` is the author's name. Texts are empty where the author gave none. `annotations` is the
    JSON of `ToolAnnotations`. `requires` are the client capabilities, dotted, without which it
    cannot run. `time_limit` is in seconds, per round. `uri` is a resource's URI or the text of a
    URI template, `size` a resource's length in bytes, if known. `completer` answers
    `completion/complete` for a prompt's arguments or a template's variables. `answer_within` is how
    long its questions wait for answers, in seconds. `claims`: whether a round that gets an answer
    must run only once (None: decided by the annotations). `unasked`: whether it accepts answers to
    questions that were not asked. `task_support` is a tool's, and so is `retries`: how often a round of
    its tasks may run again after an unexpected exception.
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
    primitive_type: PrimitiveType = PrimitiveType.TOOL
    uri: str = ""
    mime_type: str = ""
    size: int | None = None
    arguments: tuple[PromptArgument, ...] = ()
    completer: Program | None = None
    answer_within: float | None = None
    claims: bool | None = None
    unasked: bool = False
    task_support: TaskSupport = TaskSupport.NEVER
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Sending:
    """A request, or a secret in one, that a configuration sends, as far as it is known before a call.

    `field` is its path in the configuration. `url` is the address, `secret` the name of a secret, and
    `secret_place` where the request contains it (header, query or body); empty for what is not known.
    """

    field: str
    url: str = ""
    secret: str = ""
    secret_place: str = ""


class Kind(Protocol):
    """One kind.

    `label` and `about` say in the console what it is and when to choose it. `primitive_types` are
    those that it supports.
    """

    name: str
    label: str
    about: str = ""
    primitive_types: Collection[PrimitiveType]

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        """Return the model of configurations for this primitive type."""

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        """Compile a configuration. `primitive_type` is ignored where the configuration determines
        it.

        Raises KindError with problems by field.
        """

    def check(self) -> Sequence[ArgumentProblem]:
        """Return the problems of the kind's environment; none of them stops anything else."""
        return ()

    def choices(self) -> Sequence[tuple[str, str]]:
        """Return the values that a configuration may refer to: (value, label) pairs in display
        order."""
        return ()

    def secrets_of(self, config: Mapping[str, Any]) -> Collection[str]:
        """Return the names of the tenant's secrets that a configuration uses, valid or not."""
        return frozenset(sending.secret for sending in self.sendings_of(config) if sending.secret)

    def sendings_of(self, config: Mapping[str, Any]) -> Sequence[Sending]:
        """Return what a configuration sends; nothing if it cannot be read."""
        return ()
