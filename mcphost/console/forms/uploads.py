"""Files in forms: newly uploaded, kept from before, or carried through a form error.

A page names a file that is stored already by its digest, and does not contain it. A file that was
uploaded but could not be saved yet is sent back inside the form, so that it is not lost.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms as django_forms
from django.core.exceptions import ValidationError

from mcphost.console.forms import forms
from mcphost.protocol.images import TYPES, image_type, matches_mime_type, parse_data_uri

UNKNOWN_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Blob:
    """A file's content and MIME type."""

    mime_type: str
    data: bytes

    @classmethod
    def of(cls, mime_type: str, base64: str) -> "Blob":
        """Decode a file that is stored as Base64."""
        return cls(mime_type or UNKNOWN_TYPE, b64decode(base64))

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data + self.mime_type.encode()).hexdigest()

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode()

    @property
    def uri(self) -> str:
        return f"data:{self.mime_type};base64,{self.base64}"

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def is_image(self) -> bool:
        """Whether browsers may be shown it as an image: a known type that matches the content."""
        return self.mime_type in TYPES and matches_mime_type(self.mime_type, self.data)


class FileForm(forms.ConsoleForm):
    """A form with one file: newly uploaded, or kept.

    `stored` has the files that may be named by their digest, `max_bytes` is the largest size in bytes.
    """

    file = forms.file("File")
    kept = django_forms.CharField(required=False, widget=django_forms.HiddenInput())

    def __init__(
        self, *args: Any, stored: Mapping[str, Blob], max_bytes: int, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._stored, self._max_bytes = stored, max_bytes
        self.blob: Blob | None = stored.get(self.initial.get("kept", ""))

    def clean_file(self) -> Any:
        upload = self.cleaned_data["file"]
        if upload is None:
            return None
        self._check_size(upload.size)
        data = upload.read()
        # The browser's word comes second, without parameters.
        declared_type = (upload.content_type or "").partition(";")[0].strip()
        self.blob = Blob(image_type(data) or declared_type or UNKNOWN_TYPE, data)
        return upload

    def clean_kept(self) -> str:
        kept: str = self.cleaned_data["kept"]
        if self.cleaned_data.get("file") is None and kept:
            blob = self._stored.get(kept)
            if blob is None:
                try:
                    blob = Blob(*parse_data_uri(kept))
                except ValueError:
                    raise ValidationError("The uploaded file was lost. Choose it again.") from None
                self._check_size(blob.size)
            self.blob = blob
        return kept

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise ValidationError(f"The file is larger than {in_words(self._max_bytes)}.")

    def forget_new(self) -> None:
        """Drop a file that was uploaded and is not stored yet."""
        if self.blob is not None and self.blob.digest not in self._stored:
            self.blob = None

    @property
    def carried(self) -> str:
        """The value that keeps the file without choosing it again: its digest, or a data: URI."""
        if self.blob is None:
            return ""
        digest = self.blob.digest
        return digest if digest in self._stored else self.blob.uri


def stored(blobs: Iterable[Blob]) -> dict[str, Blob]:
    """Index files that are stored already by their digest."""
    return {blob.digest: blob for blob in blobs}


def in_words(size: int) -> str:
    """Format a size as KiB or MiB."""
    return f"{size // 1024} KiB" if size < 1024 * 1024 else f"{size / 1024 / 1024:g} MiB"
