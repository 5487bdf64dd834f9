"""The rows of a prompt written in the console: its arguments and its messages."""

from collections.abc import Iterable, Mapping
from typing import Any

from mcphost.console.forms import forms
from mcphost.console.forms.rows import RowForm
from mcphost.console.forms.uploads import Blob, FileForm, in_words

ROLES = (("user", "User"), ("assistant", "Assistant"))
TYPES = (
    ("text", "Text"),
    ("image", "Image"),
    ("audio", "Audio"),
    ("resource_link", "Link to a resource"),
    ("resource", "Embedded resource"),
)
MAX_BYTES = 512 * 1024


class ArgumentRow(RowForm):
    """One argument."""

    CONTENT_FIELDS = ("name", "title", "description", "choices")

    name = forms.text(
        "Name", "In the texts, write it in braces, such as `{city}`.", spellcheck="false"
    )
    title = forms.text("Title", "Shown to users.")
    description = forms.text("Description", "What to enter.")
    required = forms.switch("Required")
    choices = forms.lines("Suggestions", "One per line. Offered while users type.", rows=2)

    def as_config(self) -> dict[str, Any]:
        """Return the argument in the format of the kind's configuration."""
        submitted = self.cleaned_data
        return {
            "name": submitted["name"],
            "title": submitted["title"],
            "description": submitted["description"],
            "required": submitted["required"],
            "choices": lines_of(submitted["choices"]),
        }

    @staticmethod
    def initial_values(argument: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        return {"required": True, **argument, "choices": "\n".join(argument.get("choices", ()))}


class MessageRow(FileForm, RowForm):
    """One message: its role and one block of content."""

    CONTENT_FIELDS = ("text", "file", "kept", "uri")
    FIELD_BY_KEY = {"data": "file", "blob": "file", "mimeType": "mime_type"}

    role = forms.select("Role", choices=ROLES)
    type = forms.select("Content", choices=TYPES)
    text = forms.lines("Text", rows=4)
    file = forms.file(
        "File", f"An image, audio, or any embedded file, of at most {in_words(MAX_BYTES)}."
    )
    uri = forms.text("URI", "The URI of the resource.", inputmode="url", spellcheck="false")
    name = forms.text("Name", "The name of the link.")
    mime_type = forms.text("MIME type", "Empty: the type of the file.", spellcheck="false")

    def is_blank(self) -> bool:
        """A row with a content type other than text counts: the type was chosen on purpose."""
        has_type = self["type"].data not in (None, "", "text")
        return super().is_blank() and not (has_type and not self["remove"].data)

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        kind = submitted.get("type") or "text"
        if kind == "text" and self.blob is not None:
            self.add_error("type", "A file is not text. Choose another content type.")
        if kind in ("image", "audio") and self.blob is None and not self.errors:
            self.add_error("file", "Choose a file.")
        if kind in ("resource", "resource_link") and not submitted.get("uri"):
            self.add_error("uri", "Give the URI of the resource.")
        if kind == "resource_link" and not submitted.get("name"):
            self.add_error("name", "Give the link a name.")
        return submitted

    def as_config(self) -> dict[str, Any]:
        """Return the message in the format of the kind's configuration."""
        submitted = self.cleaned_data
        kind = submitted["type"] or "text"
        content: dict[str, Any]
        mime_type = submitted["mime_type"] or (self.blob.mime_type if self.blob else "")
        typed = {"mimeType": mime_type} if mime_type else {}
        match kind:
            case "text":
                content = {"text": plain(submitted["text"])}
            case "image" | "audio":
                content = {"data": self.blob.base64 if self.blob else "", **typed}
            case "resource_link":
                content = {"uri": submitted["uri"], "name": submitted["name"], **typed}
            case _:  # an embedded resource: the file, or else the text
                file = {"blob": self.blob.base64} if self.blob else None
                inside = file or {"text": plain(submitted["text"])}
                content = {"resource": {"uri": submitted["uri"], **typed, **inside}}
        return {"role": submitted["role"] or "user", "content": {"type": kind, **content}}

    @staticmethod
    def initial_values(message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the initial values of a row."""
        content = message["content"]
        inside = content.get("resource", content)
        blob = blob_of(content)
        return {
            "role": message.get("role", "user"),
            "type": content["type"],
            "text": inside.get("text", ""),
            "uri": inside.get("uri", ""),
            "name": content.get("name", ""),
            "mime_type": "" if blob else inside.get("mimeType", ""),
            "kept": blob.digest if blob else "",
        }


def blobs(messages: Iterable[Mapping[str, Any]]) -> list[Blob]:
    """Return the files in the messages."""
    message_blobs = (blob_of(message["content"]) for message in messages)
    return [blob for blob in message_blobs if blob is not None]


def blob_of(content: Mapping[str, Any]) -> Blob | None:
    """Return the file in a block of content, if there is one."""
    inside = content.get("resource", content)
    data = inside.get("data") or inside.get("blob")
    return Blob.of(inside.get("mimeType", ""), data) if data else None


def lines_of(lines: str) -> list[str]:
    """Split into stripped lines, without empty ones."""
    return [line.strip() for line in lines.splitlines() if line.strip()]


def plain(text: str) -> str:
    """Replace the CRLF line ends that browsers post with LF."""
    return text.replace("\r\n", "\n")
