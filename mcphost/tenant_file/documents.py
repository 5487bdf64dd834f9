"""Read and write the YAML of a tenant's file.

It is read by the core schema of YAML 1.2 (section 10.3), so that only JSON values come out of it, and
without anchors, aliases and tags. It is written so that readers of YAML 1.1 read the same values.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from mcphost.kinds.yaml_scalars import MAX_INTEGER_DIGITS, PLAIN_SCALAR
from mcphost.tenant_file.errors import FileProblem, InvalidFileError, path_text

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 100
MAX_VALUES: Final = 500_000
MAX_LINE_DEPTH: Final = 16
"""Members below have the line of the one around them: each path of a deep member would need much memory."""

Path = tuple[str | int, ...]

_BASES: Final = {"int": 10, "octal": 8, "hex": 16}
_CONSTANTS: Final = {"null": None, "true": True, "false": False}
_UNUSUAL: Final = re.compile(
    r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that are escaped."""
_NO_BLOCK: Final = re.compile(r"\A\s|[ \t](?:\n|\Z)")
"""What a text of several lines may not have to be written as they are."""
_WIDTH: Final = 1 << 30


@dataclass(slots=True)
class YamlDocument:
    """A value that was read, with the line of each of its members."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line of a member, or of the nearest one around it."""
        for end in range(min(len(path), MAX_LINE_DEPTH), -1, -1):
            line = self.lines.get(tuple(path[:end]))
            if line is not None:
                return line
        return 1


def read(data: bytes) -> YamlDocument:
    """Parse a file. Raises InvalidFileError with the line of what cannot be read."""
    if len(data) > MAX_BYTES:
        raise _refusal(1, f"The file is larger than {MAX_BYTES >> 20} MiB.")
    try:
        return _YamlReader(data).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "it has characters that YAML does not allow"
        line = 1 if mark is None else mark.line + 1
        raise _refusal(line, f"This is not YAML: {problem}.") from None


def write(value: Any) -> str:
    """Return a value as YAML, in the order of its members; the same value gives the same text."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return text


def _refusal(line: int, message: str, path: Path = ()) -> InvalidFileError:
    return InvalidFileError([FileProblem(line, path_text(path), message)])


class _YamlReader:
    """Builds a document from the parser's events, so that a limit ends the reading at once."""

    def __init__(self, data: bytes) -> None:
        self._loader = yaml.CSafeLoader(data)
        self._read = YamlDocument()
        self._values = 0

    def document(self) -> YamlDocument:
        while not isinstance(event := self._loader.get_event(), yaml.DocumentStartEvent):
            if isinstance(event, yaml.StreamEndEvent):
                return self._read
        self._read.value = self._value(self._loader.get_event(), ())
        self._loader.get_event()
        if not isinstance(event := self._loader.get_event(), yaml.StreamEndEvent):
            raise _refusal(_line(event), "The file has more than one document.")
        return self._read

    def _value(self, event: Any, path: Path) -> Any:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise _refusal(line, "Anchors and aliases are not supported.", path)
        if event.tag is not None:
            raise _refusal(line, "Tags are not supported.", path)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _refusal(line, f"The file has more than {MAX_VALUES:,} values.", path)
        self._note(path, line)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event, path)
        if len(path) >= MAX_DEPTH:
            raise _refusal(line, f"The file is nested deeper than {MAX_DEPTH} levels.", path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        return self._sequence(path)

    def _note(self, path: Path, line: int) -> None:
        """Remember the line of a member: of its key, where it has one."""
        if len(path) <= MAX_LINE_DEPTH:
            self._read.lines.setdefault(path, line)

    def _mapping(self, path: Path) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None or event.anchor:
                raise _refusal(line, "A key must be a plain text.", path)
            key = event.value
            if key in members:
                raise _refusal(line, f"The key {key[:80]!r} is there twice.", path)
            self._note((*path, key), line)
            members[key] = self._value(self._loader.get_event(), (*path, key))
        return members

    def _sequence(self, path: Path) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            values.append(self._value(event, (*path, len(values))))
        return values


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _scalar(event: yaml.ScalarEvent, path: Path) -> Any:
    text: str = event.value
    matched = PLAIN_SCALAR.fullmatch(text) if event.implicit[0] else None
    group = None if matched is None else matched.lastgroup
    if group is None:
        return text
    if group in _CONSTANTS:
        return _CONSTANTS[group]
    number = _number(text, group)
    if number is None:
        raise _refusal(_line(event), f"JSON has no number {text[:40]}.", path)
    return number


def _number(text: str, group: str) -> int | float | None:
    if group in _BASES:
        number = int(text, _BASES[group]) if len(text) <= MAX_INTEGER_DIGITS else 2**64
        return number if -(2**63) <= number < 2**64 else None
    value = math.inf if group == "infinite" else float(text)
    return value if math.isfinite(value) else None


class _Dumper(yaml.SafeDumper):
    """Writes texts so that YAML 1.1 and 1.2 read the same, and lines of text as lines."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _UNUSUAL.search(text) or ("\n" in text and _NO_BLOCK.search(text)):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif PLAIN_SCALAR.fullmatch(text) is not None:
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_mapping(dumper: yaml.SafeDumper, members: Mapping[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", list(members.items()))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
