"""Icons in a form: an uploaded image, or the URL of one that is hosted elsewhere."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from mimetypes import guess_type
from typing import Any

from django.core.exceptions import ValidationError

from mcphost.catalogue import icons
from mcphost.console.forms import forms
from mcphost.console.forms.rows import RowForm, Rows
from mcphost.console.forms.uploads import Blob, FileForm, in_words, stored
from mcphost.protocol.images import TYPES, parse_data_uri

MAX_BYTES = icons.MAX_SOURCE * 3 // 4 - 64
"""The largest image whose data: URI fits into `icons.MAX_SOURCE`."""

_THEMES = (("", "any"), *((theme, theme) for theme in icons.THEMES))


class IconRow(FileForm, RowForm):
    """One icon."""

    CONTENT_FIELDS = ("file", "kept", "address")

    file = forms.file(
        "Image", f"PNG, JPEG or WebP of at most {in_words(MAX_BYTES)}.", ",".join(TYPES)
    )
    address = forms.text(
        "Or its address",
        "The https:// address of an image hosted elsewhere.",
        inputmode="url",
        spellcheck="false",
    )
    sizes = forms.text("Sizes", "Such as 48x48.", spellcheck="false")
    theme = forms.select("For themes", "Light or dark, if it suits only one.", choices=_THEMES)

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        if self.blob is not None and submitted.get("address"):
            raise ValidationError({"address": "Either an image or an address, not both."})
        if self.blob is not None and "file" not in self.errors and not self.blob.is_image:
            self.blob = None
            raise ValidationError({"file": "This is not a PNG, JPEG or WebP image."})
        return submitted

    def as_config(self) -> dict[str, Any]:
        """Return the icon in its wire format."""
        submitted = self.cleaned_data
        if self.blob is not None:
            icon: dict[str, Any] = {"src": self.blob.uri, "mimeType": self.blob.mime_type}
        else:
            icon = {"src": submitted["address"]}
            guessed, _ = guess_type(submitted["address"].partition("?")[0])
            icon |= {"mimeType": guessed} if guessed in icons.TYPES else {}
        sizes = submitted["sizes"].replace(",", " ").split()
        theme = submitted["theme"]
        return icon | ({"sizes": sizes} if sizes else {}) | ({"theme": theme} if theme else {})


def icon_rows(sent: tuple[Any, Any], before: Sequence[Mapping[str, Any]]) -> Rows[IconRow]:
    """Return the icon rows of a form, which start with the existing icons."""
    blobs, starting = [], []
    for icon in before:
        blob: Blob | None = None
        with suppress(ValueError):
            blob = Blob(*parse_data_uri(str(icon.get("src", ""))))
            blobs.append(blob)
        row = {
            "kept": blob.digest if blob else "",
            "address": "" if blob else icon.get("src", ""),
            "sizes": " ".join(icon.get("sizes", ())),
            "theme": icon.get("theme", ""),
        }
        starting.append(row)
    kept = stored(blobs)
    return Rows(IconRow, "icons", sent, starting, stored=kept, max_bytes=MAX_BYTES)
