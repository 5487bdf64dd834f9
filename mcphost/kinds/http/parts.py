"""The files of a multipart body, with the values of a call: Base64 becomes bytes."""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from mcphost.egress.multipart import FilePart
from mcphost.kinds.http.configs import FileConfig
from mcphost.kinds.http.templates import Missing, Placeholder, TextTemplate, Values, as_text
from mcphost.sdk import ToolError

MAX_FILES: Final = 32
"""The most files of one request: an argument may be a list."""
_OCTETS: Final = "application/octet-stream"


class _FileTemplate(NamedTuple):
    name: str
    content: Placeholder
    file_name: TextTemplate
    media_type: TextTemplate

    @classmethod
    def of(cls, config: FileConfig) -> Self:
        content = TextTemplate(config.content).only
        assert content is not None  # by FileConfig
        texts = TextTemplate(config.file_name), TextTemplate(config.media_type)
        return cls(config.name, content, *texts)


class FileTemplates:
    """The templates of the files, parsed once."""

    def __init__(self, files: Sequence[FileConfig]) -> None:
        self._files = [_FileTemplate.of(file) for file in files]

    @property
    def names(self) -> Iterator[str]:
        return (file.name for file in self._files)

    @property
    def paths(self) -> Iterator[Placeholder | None]:
        """The placeholders that are nothing but a content or a file name."""
        for file in self._files:
            yield from (file.content, file.file_name.only)

    @property
    def placeholders(self) -> Iterator[tuple[str, Sequence[Placeholder]]]:
        """The path of each template in the list of files, and its placeholders."""
        for number, file in enumerate(self._files):
            yield f"{number}.content", [file.content]
            yield f"{number}.file_name", file.file_name.placeholders
            yield f"{number}.media_type", file.media_type.placeholders

    def fill(self, values: Values) -> tuple[FilePart, ...]:
        """Return the files; one whose content is missing is left out. Raises ToolError."""
        parts = tuple(self._filled(values))
        if len(parts) > MAX_FILES:
            raise ToolError(f"There may be at most {MAX_FILES} files")
        return parts

    def _filled(self, values: Values) -> Iterator[FilePart]:
        for file in self._files:
            value = file.content.value(values)
            if isinstance(value, Missing):
                continue
            file_name = _text(file.file_name, values) or file.name
            media_type = _text(file.media_type, values) or _OCTETS
            for content in (value if isinstance(value, list) else [value])[: MAX_FILES + 1]:
                yield FilePart(file.name, decoded(file.content, content), file_name, media_type)


def _text(template: TextTemplate, values: Values) -> str:
    filled = template.fill(values, as_text)
    return filled if isinstance(filled, str) else ""


def decoded(placeholder: Placeholder, value: Any) -> bytes:
    """Return the bytes of a value in Base64. Raises ToolError, with the placeholder's name."""
    if isinstance(value, str):
        with suppress(ValueError):
            return b64decode("".join(value.split()), validate=True)
    raise ToolError(f"{placeholder} must be the content of a file in Base64")
