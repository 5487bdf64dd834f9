"""Templates of resource URIs: a part of RFC 6570, and matching it backwards.

What is taken: `{name}` for what lies between two slashes, `{+path}` for what may have slashes in
it, and `{?first,second}` at the end for a query any part of which may be missing. RFC 6570 says
how to write a URI from a template; to find the values in a URI again is ours: where it can be done
in several ways, the variables further left take the most.

Time is linear in the URI's length for each variable, whatever the template, and short (`laid_out`):
no backtracking. Templates are made by tenants, and URIs by callers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from mcphost.protocol.laid_out import LaidOut, Places
from mcphost.protocol.uris import MAX_LENGTH, check_uri

MAX_VARIABLES: Final = 8

_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_WIDE: Final = _UNRESERVED | frozenset("%:/?#[]@!$&'()*+,;=")
_NARROW: Final = _WIDE - frozenset("/?#&[]")
"""More than RFC 6570 writes, so that people need not encode `a@example.com`."""
_QUERIED: Final = _NARROW | frozenset("/?")

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CUT_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SLASHES: Final = ("/", "\\")
_SEPARATORS: Final = re.compile(r"[/\\]")
_LITERAL_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


class _Variable(NamedTuple):
    """A variable, the characters its value may be written in, the text that follows it, and whether
    its value may begin with a slash."""

    name: str
    characters: frozenset[str]
    then: str
    rooted: bool


class UriTemplate:
    """A URI template that has been checked. `variables` are in the order of the template.

    Raises ValueError saying what is wrong with the text.
    """

    __slots__ = ("_head", "_queried", "_variables", "text")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"the template has more than {MAX_LENGTH} characters")
        self.text = text
        pieces = _EXPRESSION.split(text)
        literals, expressions = pieces[::2], pieces[1::2]
        _check_literals(literals)
        self._queried = _queried(literals, expressions)
        if self._queried:
            expressions, literals = expressions[:-1], literals[:-1]
        if not all(literals[1:-1]):
            raise ValueError("the template has two expressions with nothing between them")
        self._head = literals[0]
        self._variables = tuple(map(_variable, literals, expressions, literals[1:]))
        _check_variables(self.variables)
        _check_written(text, literals, self._queried)

    @property
    def variables(self) -> tuple[str, ...]:
        return (*(variable.name for variable in self._variables), *self._queried)

    @property
    def optional(self) -> frozenset[str]:
        """The variables that a URI which fits may be without."""
        return frozenset(self._queried)

    def match(self, uri: str) -> dict[str, str] | None:
        """The decoded values of a URI that fits; None for one that does not.

        Those of the query that are missing are left out; all others have at least one character.
        What no author should have to fear is no match: text that is not UTF-8, NUL, a `..` between
        slashes, encoded or not, and a slash at the beginning, which would make a path of its own of
        what is put behind a folder. Such a slash is fine in a query, and for `{+path}` behind a
        name, where it cannot be missing. `uri` is in the normal form (see `uris.normalize`).
        """
        return self.match_laid_out(LaidOut(uri))

    def match_laid_out(self, laid: LaidOut) -> dict[str, str] | None:
        """The same for a URI that is held against other templates, too."""
        uri, end = laid.uri, laid.size
        if not uri.startswith(self._head) or end > MAX_LENGTH or not uri.isascii():
            return None
        query: str | None = None
        if self._queried:
            path, mark, rest = uri.partition("?")
            end, query = len(path), rest if mark else None
        values = _values(laid, len(self._head), end, self._variables)
        queried = self._query(query)
        if values is None or queried is None:
            return None
        decoded = _decoded({**values, **queried})
        return decoded if decoded is not None and self._are_fit(decoded) else None

    def _are_fit(self, decoded: Mapping[str, str]) -> bool:
        """Whether no value begins with a slash that must not."""
        return not any(
            decoded[variable.name].startswith(_SLASHES)
            for variable in self._variables
            if not variable.rooted
        )

    def _query(self, query: str | None) -> Mapping[str, str] | None:
        """The encoded values in a query by their names, which may come in any order but once."""
        values: dict[str, str] = {}
        for pair in query.split("&") if query is not None else ():
            name, _, value = pair.partition("=")
            if name not in self._queried or name in values or not _QUERIED.issuperset(value):
                return None
            values[name] = value
        return values


def _check_literals(literals: Sequence[str]) -> None:
    if any("{" in literal or "}" in literal for literal in literals):
        raise ValueError("the template has a { without its }, or a } without its {")
    if _LITERAL_SCHEME.match(literals[0]) is None:
        raise ValueError("the template does not begin with a scheme in lower case, such as docs:")


def _queried(literals: Sequence[str], expressions: Sequence[str]) -> tuple[str, ...]:
    """The names in the `{?…}` at the end, if there is one."""
    if not any(expression.startswith("?") for expression in expressions):
        return ()
    if literals[-1] or any(expression.startswith("?") for expression in expressions[:-1]):
        raise ValueError("the template has {?…} elsewhere than at its end")
    if any("?" in literal or "#" in literal for literal in literals):
        raise ValueError("the template has ? or # before its {?…}")
    return tuple(map(_name, expressions[-1][1:].split(",")))


def _variable(before: str, expression: str, then: str) -> _Variable:
    if expression.startswith("+"):
        rooted = not before.endswith(("/", ":"))
        return _Variable(_name(expression[1:]), _WIDE, then, rooted)
    return _Variable(_name(expression), _NARROW, then, rooted=False)


def _name(text: str) -> str:
    if _NAME.fullmatch(text):
        return text
    raise ValueError(
        f"the template has {{{text}}}: an expression is {{name}}, {{+name}} or, at the end, "
        "{?name,name}; a name has letters, digits and _, 64 at most"
    )


def _check_variables(names: Sequence[str]) -> None:
    if not names:
        raise ValueError("the template has no {variable}: that is a resource")
    if len(names) > MAX_VARIABLES:
        raise ValueError(f"the template has more than {MAX_VARIABLES} variables")
    if len(set(names)) < len(names):
        raise ValueError("the template has a variable twice")


def _check_written(text: str, literals: Sequence[str], queried: Sequence[str]) -> None:
    """Look at the URI that the template writes when every value is one letter."""
    problem = check_uri("x".join(literals) + ("?x=x" if queried else ""))
    if problem is not None:
        raise ValueError(f"the template writes no good URI: {problem}")


def _values(
    laid: LaidOut, start: int, end: int, variables: Sequence[_Variable]
) -> dict[str, str] | None:
    """The encoded values of variables that write the URI from `start` to `end`."""
    if not _has_literals(laid.uri, start, end, variables):
        return None
    endings = _endings(laid, end, variables)
    values: dict[str, str] = {}
    for variable, ends in zip(variables, endings, strict=True):
        at = laid.furthest(start, variable.characters, ends)
        if at is None:
            return None
        values[variable.name] = laid.uri[start:at]
        start = at + len(variable.then)
    return values if start == end else None


def _has_literals(uri: str, start: int, end: int, variables: Sequence[_Variable]) -> bool:
    """Whether the texts between the values are there in their order: a quick look, by which most
    URIs that do not fit are known."""
    for variable in variables:
        start = uri.find(variable.then, start + 1, end)
        if start < 0:
            return False
        start += len(variable.then)
    return uri.endswith(variables[-1].then, 0, end) if variables else True


def _endings(laid: LaidOut, end: int, variables: Sequence[_Variable]) -> list[Places]:
    """For each variable, where its value may end so that all that follows it fits."""
    endings: list[Places] = []
    starts = laid.place(end)
    for variable in reversed(variables):
        ends = laid.before(variable.then, starts)
        endings.append(ends)
        starts = laid.reaching(variable.characters, ends)
    return endings[::-1]


def _decoded(values: Mapping[str, str]) -> dict[str, str] | None:
    """The values as text, None when one is not fit to be handed to anybody."""
    decoded = {}
    for name, value in values.items():
        if _CUT_ESCAPE.search(value) is not None:
            return None
        try:
            text = unquote(value, errors="strict")
        except UnicodeDecodeError:
            return None
        if "\0" in text or ".." in _SEPARATORS.split(text):
            return None
        decoded[name] = text
    return decoded
