"""Texts and JSON with placeholders for the values of a call.

A placeholder is a path in braces: `{arguments.city}`, `{answers.reason.comment}` or
`{secrets.api_key}`. The steps after the first word are names of an object or positions of a list; a
name with other characters is quoted, as in `{arguments."System.State"}`. `{{…}}` stands for the text
`{…}`. Values are inserted once and are not searched for placeholders.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from mcphost.egress.secret_values import SecretHandle, Template, Text

ARGUMENTS: Final = "arguments"
ANSWERS: Final = "answers"
SECRETS: Final = "secrets"
ROOTS: Final = (ARGUMENTS, ANSWERS, SECRETS)

_STEP: Final = r'(?:\.(?:[A-Za-z0-9_$@-]+|"[^"{}]+"))'
_PLACEHOLDER: Final = re.compile(
    r"\{\{(?P<literal>[A-Za-z_][^{}]*)\}\}|\{(?P<path>[A-Za-z_][^{}]*)\}", re.ASCII
)
_PATH: Final = re.compile(rf"(?P<root>[a-z]+)(?P<steps>{_STEP}+)", re.ASCII)
_EACH_STEP: Final = re.compile(r'\.(?:([A-Za-z0-9_$@-]+)|"([^"{}]+)")', re.ASCII)


class Missing:
    """Stands for a value that the call does not have."""


MISSING: Final = Missing()

Values = Mapping[str, Any]
"""The values of a call by the first word of a path: its arguments, and its answers by key."""


class TemplateError(ValueError):
    """A template cannot be read, or a value cannot be inserted. The message is for the author."""


class Placeholder(NamedTuple):
    """A path to a value, such as `arguments.city`."""

    root: str
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.root, *self.steps))

    def value(self, values: Values) -> Any:
        """Return the value at the path; MISSING where there is none, and for null."""
        value: Any = values.get(self.root)
        for step in self.steps:
            value = _member(value, step)
        return MISSING if value is None else value


def _member(node: Any, step: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(step)
    if isinstance(node, list) and step.isdecimal() and int(step) < len(node):
        return node[int(step)]
    return None


class TextTemplate:
    """A text with placeholders. Raises TemplateError for one that cannot be read."""

    __slots__ = ("pieces",)

    def __init__(self, text: str) -> None:
        self.pieces: tuple[str | Placeholder, ...] = tuple(_pieces(text))

    @property
    def placeholders(self) -> list[Placeholder]:
        return [piece for piece in self.pieces if isinstance(piece, Placeholder)]

    @property
    def only(self) -> Placeholder | None:
        """The placeholder, if the text is nothing else."""
        first = self.pieces[0] if len(self.pieces) == 1 else None
        return first if isinstance(first, Placeholder) else None

    def fill(self, values: Values, written: Callable[[Any], str]) -> Text | Missing:
        """Return the text with values, each as `written` writes it; MISSING if one is missing.

        Secrets stay handles, which the sender of the request fills in.
        """
        filled: list[str | SecretHandle] = []
        for piece in self.pieces:
            if isinstance(piece, str):
                filled.append(piece)
            elif piece.root == SECRETS:
                filled.append(SecretHandle(piece.steps[0]))
            else:
                value = piece.value(values)
                if isinstance(value, Missing):
                    return MISSING
                filled.append(written(value))
        if any(isinstance(piece, SecretHandle) for piece in filled):
            return Template(tuple(filled))
        return "".join(map(str, filled))

    def read(self, values: Values) -> str:
        """Return the text for a person: a value that is missing is empty. It must have no secrets."""
        texts = (piece if isinstance(piece, str) else piece.value(values) for piece in self.pieces)
        return "".join("" if isinstance(text, Missing) else as_text(text) for text in texts)


def _pieces(text: str) -> Iterator[str | Placeholder]:
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        literal = match["literal"]
        yield _placeholder(match["path"]) if literal is None else f"{{{literal}}}"
    if end < len(text):
        yield text[end:]


def _placeholder(path: str) -> Placeholder:
    matched = _PATH.fullmatch(path)
    if matched is None or matched["root"] not in ROOTS:
        raise TemplateError(
            f"{{{path}}} is no placeholder: one begins with arguments., answers. or secrets. "
            f"(write {{{{{path}}}}} for the text itself)"
        )
    steps = tuple(plain or quoted for plain, quoted in _EACH_STEP.findall(matched["steps"]))
    if matched["root"] == SECRETS and len(steps) != 1:
        raise TemplateError(f"{{{path}}}: a secret has a name and no parts")
    return Placeholder(matched["root"], steps)


def as_text(value: Any) -> str:
    """Write a value into a text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


class JsonTemplate:
    """JSON whose strings are templates. A string that is only a placeholder becomes the value itself.

    A member of an object, or an element of a list, whose value is missing is left out.
    """

    __slots__ = ("_node", "placeholders")

    def __init__(self, written: Any) -> None:
        self.placeholders: list[Placeholder] = []
        self._node = self._parse(written)

    def _parse(self, node: Any) -> Any:
        match node:
            case str():
                template = TextTemplate(node)
                self.placeholders += template.placeholders
                return template
            case Mapping():
                return {name: self._parse(value) for name, value in node.items()}
            case list():
                return [self._parse(value) for value in node]
            case _:
                return node

    def fill(self, values: Values) -> Any:
        """Return the JSON with values. Secrets stay handles."""
        return _filled(self._node, values)


def _filled(node: Any, values: Values) -> Any:
    match node:
        case TextTemplate():
            only = node.only
            if only is None or only.root == SECRETS:
                return node.fill(values, as_text)
            return only.value(values)
        case Mapping():
            filled = {name: _filled(value, values) for name, value in node.items()}
            return {name: value for name, value in filled.items() if value is not MISSING}
        case list():
            items = [_filled(value, values) for value in node]
            return [value for value in items if value is not MISSING]
        case _:
            return node


def names(placeholders: Sequence[Placeholder], root: str) -> list[str]:
    """Return the first steps of the placeholders with this first word, each once, in order."""
    return list(
        dict.fromkeys(
            placeholder.steps[0] for placeholder in placeholders if placeholder.root == root
        )
    )
