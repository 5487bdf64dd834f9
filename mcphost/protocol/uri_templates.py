"""URI templates for resources: a subset of RFC 6570, and matching a URI against a template.

Supported are `{name}` for a value without slashes, `{+path}` for one that may have slashes, and
`{?first,second}` at the end for query parameters, each of them optional. RFC 6570 defines only how
to write a URI from a template. To find the values in a URI is our addition: where several matches
are possible, variables further left take as much as possible.

Matching takes time linear in the URI's length for each variable, without backtracking, whatever the
template (`uri_positions`). Both sides are untrusted: tenants write templates, and callers send URIs.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from mcphost.protocol.uri_positions import Positions, UriPositions
from mcphost.protocol.uris import MAX_LENGTH, check_uri

MAX_VARIABLES: Final = 8

_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_WIDE: Final = _UNRESERVED | frozenset("%:/?#[]@!$&'()*+,;=")
_NARROW: Final = _WIDE - frozenset("/?#&[]")
"""More characters than RFC 6570 writes, so that clients need not encode `a@example.com`."""
_QUERIED: Final = _NARROW | frozenset("/?")

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CUT_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SLASHES: Final = ("/", "\\")
_SEPARATORS: Final = re.compile(r"[/\\]")
_LITERAL_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


class _Variable(NamedTuple):
    """A variable: the characters allowed in its value, the text that follows it (`then`), and
    whether its value may begin with a slash (`rooted`)."""

    name: str
    characters: frozenset[str]
    then: str
    rooted: bool


class UriTemplate:
    """A checked URI template. `variables` are in the order of the template.

    Raises ValueError, with the reason, for an invalid template.
    """

    __slots__ = ("_head", "_queried", "_variables", "text")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"the template has more than {MAX_LENGTH} characters")
        self.text = text
        pieces = _EXPRESSION.split(text)
        literals, expressions = pieces[::2], pieces[1::2]
        if any("{" in literal or "}" in literal for literal in literals):
            raise ValueError("the template has a { without its }, or a } without its {")
        if _LITERAL_SCHEME.match(literals[0]) is None:
            raise ValueError(
                "the template does not begin with a scheme in lower case, such as docs:"
            )
        self._queried = _queried(literals, expressions)
        if self._queried:
            expressions, literals = expressions[:-1], literals[:-1]
        if not all(literals[1:-1]):
            raise ValueError("the template has two expressions with nothing between them")
        self._head = literals[0]
        self._variables = tuple(map(_variable, literals, expressions, literals[1:]))
        names = self.variables
        if not names:
            raise ValueError("the template has no {variable}: that is a resource")
        if len(names) > MAX_VARIABLES:
            raise ValueError(f"the template has more than {MAX_VARIABLES} variables")
        if len(set(names)) < len(names):
            raise ValueError("the template has a variable twice")
        # The URI that the template writes when every value is one letter.
        problem = check_uri("x".join(literals) + ("?x=x" if self._queried else ""))
        if problem is not None:
            raise ValueError(f"the template expands to an invalid URI: {problem}")

    @property
    def variables(self) -> tuple[str, ...]:
        return (*(variable.name for variable in self._variables), *self._queried)

    @property
    def optional(self) -> frozenset[str]:
        """The variables that may be missing from a matching URI."""
        return frozenset(self._queried)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded values of a matching URI; None if the URI does not match.

        Missing query parameters are left out; every other value has at least one character.
        Dangerous values do not match: text that is not UTF-8, NUL, a `..` segment (encoded or not),
        and a leading slash, which would make an absolute path of a value that an author appends to
        a folder. A leading slash is allowed in a query, and for `{+path}` after other text than `/`
        or `:`. `uri` must be in the normal form (see `uris.normalize`).
        """
        return self.match_positions(UriPositions(uri))

    def match_positions(self, positions: UriPositions) -> dict[str, str] | None:
        """As `match`, for a URI that is compared with several templates."""
        uri, end = positions.uri, positions.size
        if not uri.startswith(self._head) or end > MAX_LENGTH or not uri.isascii():
            return None
        query: str | None = None
        if self._queried:
            path, mark, rest = uri.partition("?")
            end, query = len(path), rest if mark else None
        values = _values(positions, len(self._head), end, self._variables)
        queried = self._query(query)
        if values is None or queried is None:
            return None
        decoded = _decoded({**values, **queried})
        if decoded is None:
            return None
        absolute = any(
            decoded[variable.name].startswith(_SLASHES)
            for variable in self._variables
            if not variable.rooted
        )
        return None if absolute else decoded

    def _query(self, query: str | None) -> Mapping[str, str] | None:
        """Return the encoded query values by name. Names may come in any order, each at most once."""
        values: dict[str, str] = {}
        for pair in query.split("&") if query is not None else ():
            name, _, value = pair.partition("=")
            if name not in self._queried or name in values or not _QUERIED.issuperset(value):
                return None
            values[name] = value
        return values


def _queried(literals: Sequence[str], expressions: Sequence[str]) -> tuple[str, ...]:
    """Return the names in the final `{?…}`, if there is one."""
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


def _values(
    positions: UriPositions, start: int, end: int, variables: Sequence[_Variable]
) -> dict[str, str] | None:
    """Return the encoded values of variables that write the URI from `start` to `end`."""
    if not _has_literals(positions.uri, start, end, variables):
        return None
    # Where each value may end so that everything after it matches, found from the last to the first.
    endings: list[Positions] = []
    starts = positions.position(end)
    for variable in reversed(variables):
        ends = positions.before(variable.then, starts)
        endings.append(ends)
        starts = positions.reaching(variable.characters, ends)
    values: dict[str, str] = {}
    for variable, ends in zip(variables, reversed(endings), strict=True):
        at = positions.furthest(start, variable.characters, ends)
        if at is None:
            return None
        values[variable.name] = positions.uri[start:at]
        start = at + len(variable.then)
    return values if start == end else None


def _has_literals(uri: str, start: int, end: int, variables: Sequence[_Variable]) -> bool:
    """Whether the texts between the values occur in order: a quick check that refuses most URIs
    that do not match."""
    for variable in variables:
        start = uri.find(variable.then, start + 1, end)
        if start < 0:
            return False
        start += len(variable.then)
    return uri.endswith(variables[-1].then, 0, end) if variables else True


def _decoded(values: Mapping[str, str]) -> dict[str, str] | None:
    """Decode the values; None if one is dangerous (see `match`)."""
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
