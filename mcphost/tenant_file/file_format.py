"""The members of a tenant's file: read into fields of the services, and written from them.

A member that is omitted from a primitive has its default. Settings of the tenant that are omitted stay as
they are, and so does a whole section.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from mcphost.catalogue.batches import DesiredPrimitive, served_fields
from mcphost.catalogue.fields import FIELD_NAMES, PrimitiveFields, changed, working_copy
from mcphost.catalogue.models import Primitive
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenant_file.documents import Path, YamlDocument
from mcphost.tenant_file.errors import FileProblem, InvalidFileError, path_text
from mcphost.tenants.fields import TenantFields
from mcphost.vault.secrets.fields import NAME_RULE, is_name

FORMAT: Final = 1
SECTIONS: Final[Mapping[str, PrimitiveType]] = {
    "tools": PrimitiveType.TOOL,
    "prompts": PrimitiveType.PROMPT,
    "resources": PrimitiveType.RESOURCE,
    "templates": PrimitiveType.TEMPLATE,
}
SECTION_OF: Final[Mapping[PrimitiveType, str]] = {
    primitive_type: section for section, primitive_type in SECTIONS.items()
}

_TOP: Final = ("format", "prune", "tenant", "secrets", "functions", *SECTIONS)
_IN_DRAFT: Final = tuple(
    name for name in FIELD_NAMES if name not in {"name", "primitive_type", "kind", "target_seconds"}
)
_IN_PRIMITIVE: Final = ("kind", "state", *_IN_DRAFT, "target_seconds", "draft")
_DEFAULTS: Final = PrimitiveFields(name="", config={})
_OPTIONAL: Final = tuple(name for name in (*_IN_DRAFT, "target_seconds") if name != "config")


class DesiredRow(NamedTuple):
    """A primitive of the file, and where it stands there."""

    path: Path
    desired: DesiredPrimitive


@dataclass(frozen=True, slots=True)
class TenantFile:
    """What a file asks for. `settings` are the members of its section `tenant`.

    `secrets` are names only. `prune` archives primitives that the file does not name.
    """

    prune: bool
    settings: Mapping[str, Any]
    secrets: frozenset[str]
    functions: Sequence[str]
    primitives: Sequence[DesiredRow]


class _MemberReader:
    """Collects the problems of a document, each with its line."""

    def __init__(self, document: YamlDocument) -> None:
        self._document = document
        self.problems: list[FileProblem] = []

    def refuse(self, path: Path, message: str) -> None:
        line = self._document.line_of(path)
        self.problems.append(FileProblem(line, path_text(path), message))

    def mapping(self, path: Path, value: Any, members: Sequence[str] | None) -> Mapping[str, Any]:
        """Return a mapping; an empty one for nothing, and for a value that is refused."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(path, "This must be a mapping.")
            return {}
        for name in value if members is not None else ():
            if name not in (members or ()):
                allowed = ", ".join(members or ())
                self.refuse((*path, name), f"There is no member of this name. Use {allowed}.")
        return value

    def texts(self, path: Path, value: Any) -> Sequence[str]:
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return tuple(value)
        self.refuse(path, "This must be a list of texts.")
        return ()

    def flag(self, path: Path, value: Any) -> bool:
        if value is None or isinstance(value, bool):
            return bool(value)
        self.refuse(path, "This must be true or false.")
        return False


def read_file(document: YamlDocument) -> TenantFile:
    """Return what a document asks for. Raises InvalidFileError with every problem of its form.

    Whether a primitive's fields are valid is for the catalogue to say.
    """
    reader = _MemberReader(document)
    top = reader.mapping((), document.value, _TOP)
    if top.get("format") != FORMAT or isinstance(top.get("format"), bool):
        reader.refuse(("format",), f"The file must begin with `format: {FORMAT}`.")
    file = TenantFile(
        prune=reader.flag(("prune",), top.get("prune")),
        settings=_settings(reader, top.get("tenant")),
        secrets=_secrets(reader, top.get("secrets")),
        functions=reader.texts(("functions",), top.get("functions")),
        primitives=tuple(_primitives(reader, top)),
    )
    if reader.problems:
        raise InvalidFileError(reader.problems)
    return file


def _secrets(reader: _MemberReader, value: Any) -> frozenset[str]:
    names = reader.mapping(("secrets",), value, None)
    for name in names:
        if not is_name(name):
            reader.refuse(("secrets", name), NAME_RULE)
    return frozenset(names)


def _settings(reader: _MemberReader, value: Any) -> Mapping[str, Any]:
    path = ("tenant",)
    settings = dict(reader.mapping(path, value, tuple(_SETTINGS)))
    for name in _SETTINGS.keys() & settings.keys():
        settings[name] = _SETTINGS[name](reader, (*path, name), settings[name])
    return settings


def _text(reader: _MemberReader, path: Path, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    reader.refuse(path, "This must be a text.")
    return ""


def _limit(reader: _MemberReader, path: Path, value: Any) -> int | None:
    if value is None or type(value) is int:
        return value
    reader.refuse(path, "This must be a whole number, or null for no limit.")
    return None


_SETTINGS: Final[Mapping[str, Callable[[_MemberReader, Path, Any], Any]]] = {
    "title": _text,
    "icon": _text,
    "instructions": _text,
    "allowed_origins": _MemberReader.texts,
    "outgoing_hosts": _MemberReader.texts,
    "public": _MemberReader.flag,
    "metadata_documents_only": _MemberReader.flag,
    "calls_per_minute": _limit,
    "concurrent_calls": _limit,
}
"""How each setting of a tenant is read (`tenants.fields.TenantFields`)."""


def _primitives(reader: _MemberReader, top: Mapping[str, Any]) -> Iterator[DesiredRow]:
    for section, primitive_type in SECTIONS.items():
        for name, value in reader.mapping((section,), top.get(section), None).items():
            path = (section, name)
            members = reader.mapping(path, value, _IN_PRIMITIVE)
            missing = [member for member in ("kind", "config") if member not in members]
            if missing:
                if value is None or isinstance(value, dict):  # otherwise that was refused
                    reader.refuse(path, f"Its {' and '.join(missing)} must be given.")
                continue
            desired = _desired(reader, path, primitive_type, members)
            if desired is not None:
                yield DesiredRow(path, desired)


def _desired(
    reader: _MemberReader, path: Path, primitive_type: PrimitiveType, members: Mapping[str, Any]
) -> DesiredPrimitive | None:
    state = members.get("state", PrimitiveState.PUBLISHED.value)
    if state not in PrimitiveState.values:
        states = ", ".join(PrimitiveState.values)
        reader.refuse((*path, "state"), f"This must be one of {states}.")
        return None
    fields = PrimitiveFields(
        name=str(path[-1]),
        primitive_type=primitive_type,
        kind=members["kind"],
        config=members["config"],
        **_written(members, _OPTIONAL),
    )
    draft = reader.mapping((*path, "draft"), members.get("draft"), _IN_DRAFT)
    if draft and state == PrimitiveState.DRAFT:
        reader.refuse(
            (*path, "draft"), "A draft has no other one. Write its members beside `state`."
        )
        return None
    edited = replace(fields, **_written(draft, _IN_DRAFT))
    return DesiredPrimitive(fields, PrimitiveState(state), edited if draft else None)


def _written(members: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the members of these names; null stands for the default."""
    return {
        name: getattr(_DEFAULTS, name) if members[name] is None else members[name]
        for name in names
        if name in members
    }


def setting_members(fields: TenantFields) -> dict[str, Any]:
    """Return the section `tenant`: all settings, in their order."""
    values = {name: getattr(fields, name) for name in _SETTINGS}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def primitive_members(row: Primitive) -> dict[str, Any]:
    """Return the members of a primitive: those that differ from the default, and those of its draft."""
    fields, working = served_fields(row), working_copy(row)
    members: dict[str, Any] = {"kind": fields.kind}
    if row.state != PrimitiveState.PUBLISHED:
        members["state"] = row.state
    for name in _OPTIONAL:
        value = getattr(fields, name)
        if value and value != getattr(_DEFAULTS, name):
            members[name] = value
    members["config"] = dict(fields.config)
    edited = changed(fields, working)
    if edited:
        members["draft"] = {name: getattr(working, name) for name in edited}
    return members
