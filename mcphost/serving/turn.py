"""One round about to run."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from mcphost.audit.redaction import Redactor
from mcphost.kinds.sorts import Sort
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.program import Program
from mcphost.serving.incoming import Incoming


class ResultRedactor(Protocol):
    """Takes out of a method's whole result what must not be written."""

    def redact(self, result: Mapping[str, Any]) -> Mapping[str, Any]: ...


class Primitive(Protocol):
    """What of a tool, a prompt, a resource or a template a round needs to know.

    `read_only` says that running it changes nothing, so that there is no need to have recorded the
    start. `time_limit` is in seconds, None for the platform's.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def sort(self) -> Sort: ...
    @property
    def version(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def time_limit(self) -> float | None: ...
    @property
    def program(self) -> Program: ...
    @property
    def input_redactor(self) -> Redactor: ...
    @property
    def output_redactor(self) -> ResultRedactor: ...


class Turn(NamedTuple):
    """What runs, for which call, from which journal, because of which request."""

    incoming: Incoming
    primitive: Primitive
    call: Call
    journal: Journal
