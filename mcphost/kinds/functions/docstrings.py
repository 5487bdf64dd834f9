"""Docstrings of functions: the descriptions of parameters, and the text for everything else.

Read are the sections `Args:` (Google) with entries such as `name: …`, `- **name** (int): …` and `name -- …`,
`Parameters` with a line below it (NumPy), `:param name:` (Sphinx), and `@param name …`. Headings may be
those of Markdown. No text is lost: what does not describe a parameter stays in the description.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = r"\*{0,2}(?P<name>\w+)"
_SECTION: Final = (
    r"(?:(?:Keyword |Input |Tool |Function )?(?:Arg|Param|Argument|Parameter)s|Inputs)"
)
_GOOGLE: Final = re.compile(
    rf"(?:{_SECTION}\s*:|\#{{1,6}}\s{_SECTION}:?|(?P<mark>[*_]{{1,3}}){_SECTION}:?(?P=mark):?)\s*$",
    re.IGNORECASE,
)
_BULLET: Final = r"(?:[-*+•]\s+)"
_GOOGLE_ENTRY: Final = re.compile(
    rf"(?P<depth>\s+{_BULLET}?|{_BULLET})[`*]{{0,3}}(?P<name>\w+)[`*]{{0,3}}"
    r"(?:\s*\((?:[^()]|\([^()]*\))*\))?[`*]{0,3}"
    r"(?:\s*:[`*]{0,3}(?:\s|$)|\s+(?:--?|[\u2013\u2014])\s)(?P<text>.*)$"
)
_NUMPY: Final = re.compile(r"(?:Other )?Parameters\s*$")
_NUMPY_ENTRY: Final = re.compile(rf"{_NAME}(?:\s*:.*)?$|\S")
"""Any line that is not indented: one that has no name, or several, describes no parameter."""
_UNDERLINE: Final = re.compile(r"-{3,}\s*$")
_SPHINX_ENTRY: Final = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s(?:[^:]*\s)?\*{0,2}(?P<name>\w+)\s*:(?P<text>.*)$"
)
_SPHINX_TYPE: Final = re.compile(r"[:@]type\s+(?P<name>\w+)\s*:")
_AT_ENTRY: Final = re.compile(
    r"@(?:param|arg|argument)\s+(?:\{[^{}]*\}\s+)?\[?\*{0,2}(?P<name>\w+)\]?"
    r"(?:\s*:\s|\s+(?:--?|[\u2013\u2014])\s|\s|$)(?P<text>.*)$"
)
_BLANKS: Final = re.compile(r"\n{3,}")


@dataclass(slots=True)
class _Entry:
    """Lines of a docstring. `name` is the parameter that they are about, empty for other lines, and
    `header` the line of the section's heading, which is not written when no entry is left below it."""

    lines: list[str]
    name: str = ""
    texts: list[str] = field(default_factory=list)
    header: int = -1


class Docstring:
    """A docstring, as `inspect.cleandoc` returns it, whose entries are taken by parameter. What remains
    is the description."""

    def __init__(self, text: str) -> None:
        self._entries = [_Entry([])]
        self._headers: dict[int, list[str]] = {}
        self._read_parameters(text.split("\n"))

    def peek(self, name: str) -> str:
        """Return the text of a parameter's entries in one line; empty if it has none."""
        texts = [text for entry in self._entries if entry.name == name for text in entry.texts]
        return " ".join(" ".join(texts).split())

    def take(self, name: str) -> str:
        """Return what `peek` does, and remove the entries."""
        text = self.peek(name)
        self._entries = [entry for entry in self._entries if entry.name != name]
        return text

    @property
    def rest(self) -> str:
        """The text without the entries that were taken, and without headings that nothing follows."""
        written: list[str] = []
        begun = -1
        for entry in self._entries:
            if entry.header != begun:
                written += self._headers.get(entry.header, [""])
            begun = entry.header
            written += entry.lines
        return _BLANKS.sub("\n\n", "\n".join(written)).strip()

    def _read_parameters(self, lines: list[str]) -> None:
        at = 0
        while at < len(lines):
            following = [line for line in lines[at + 1 : at + 4] if line.strip()]
            if _GOOGLE.match(lines[at]) and _GOOGLE_ENTRY.match("".join(following[:1])):
                at = self._read_google(lines, at)
            elif _NUMPY.match(lines[at]) and following[1:] and _UNDERLINE.match(lines[at + 1]):
                at = self._read_numpy(lines, at)
            else:
                at = self._read_other(lines, at)

    def _read_google(self, lines: list[str], at: int) -> int:
        """Read a section up to the next line that is neither indented nor an entry. Return the number of
        that line."""
        header, at, indent = at, at + 1, -1
        while not lines[at].strip():  # an entry follows
            at += 1
        self._headers[header] = lines[header:at]
        while at < len(lines):
            line = lines[at]
            match = _GOOGLE_ENTRY.match(line)
            depth = len(line) - len(line.lstrip())
            if match and (indent < 0 or depth <= indent):
                indent = depth
                self._add(header, line, match["name"], match["text"])
            elif not line.strip() or line[0].isspace():
                self._continue(line)
            else:
                break
            at += 1
        return at

    def _read_numpy(self, lines: list[str], at: int) -> int:
        """Read a section up to the next heading. Return its number."""
        header, at = at, at + 2
        while not lines[at].strip():
            at += 1
        self._headers[header] = lines[header:at]
        while at < len(lines) and not _UNDERLINE.match("".join(lines[at + 1 : at + 2])):
            match = _NUMPY_ENTRY.match(lines[at])
            if match or self._entries[-1].header != header:
                self._add(header, lines[at], (match and match["name"]) or "", "")
            else:
                self._continue(lines[at])
            at += 1
        return at

    def _read_other(self, lines: list[str], at: int) -> int:
        """Read a line, or a field list's entry with the indented lines below it."""
        line = lines[at]
        match = _SPHINX_ENTRY.match(line) or _AT_ENTRY.match(line)
        if match is None:
            kind = _SPHINX_TYPE.match(line)
            self._entries.append(_Entry([line], kind["name"] if kind else ""))
            return at + 1
        self._add(-1, line, match["name"], match["text"])
        at += 1
        while at < len(lines) and lines[at][:1].isspace() and lines[at].strip():
            self._continue(lines[at])
            at += 1
        return at

    def _add(self, header: int, line: str, name: str, text: str) -> None:
        self._entries.append(_Entry([line], name, [text], header))

    def _continue(self, line: str) -> None:
        self._entries[-1].lines.append(line)
        self._entries[-1].texts.append(line)
