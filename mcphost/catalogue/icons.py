"""Validation of a primitive's icons (spec: basic, `icons`).

An icon that is stored here is an image that browsers cannot execute and whose content matches its
type. One that is hosted elsewhere is only an address, of any type that the specification names.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcphost.protocol.images import check_image_uri

MAX_ICONS = 8
MAX_SOURCE = 64 * 1024
"""Characters of an address; in a data: URI, about 48 KiB of image."""
TYPES = ("image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp", "image/gif")
THEMES = ("light", "dark")

_HTTPS = re.compile(r"https://[A-Za-z0-9\[][^\s\x00-\x1f\x7f\ud800-\udfff\"'<>\\]*")
_SIZE = re.compile(r"[1-9][0-9]{0,4}x[1-9][0-9]{0,4}|any")


def check_icons(icons: Any) -> list[str]:
    """Return what is wrong with the icons, in sentences; empty if they may be served."""
    if not isinstance(icons, list | tuple):
        return ["Icons must be a list of objects."]
    if len(icons) > MAX_ICONS:
        return [f"At most {MAX_ICONS} icons are allowed."]
    return [
        f"Icon {number}: {problem}"
        for number, icon in enumerate(icons, start=1)
        for problem in _problems(icon)
    ]


def _problems(icon: Any) -> Iterator[str]:
    if not isinstance(icon, Mapping):
        yield "it must be an object with `src`."
        return
    for unknown in sorted(set(map(str, icon)) - set(_CHECKS)):
        yield f"`{unknown}` is not a field of an icon."
    for field, check in _CHECKS.items():
        if field == "src" or field in icon:
            problem = check(icon.get(field))
            if problem:
                yield problem
    source: Any = icon.get("src")
    mime_type = icon.get("mimeType")
    is_data = isinstance(source, str) and source.startswith("data:")
    if is_data and mime_type in TYPES and not source.startswith(f"data:{mime_type};"):
        yield "`mimeType` differs from the type in the data: URI."


def _src(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > MAX_SOURCE:
        return f"`src` must be a URL of at most {MAX_SOURCE} characters."
    if value.startswith("data:"):
        return check_image_uri(value)
    if not _HTTPS.fullmatch(value):
        return "`src` must be an https: URL or a data: URI in Base64."
    return None


def _mime_type(value: Any) -> str | None:
    return None if value in TYPES else f"`mimeType` must be one of {', '.join(TYPES)}."


def _sizes(value: Any) -> str | None:
    if not isinstance(value, list | tuple) or not all(
        isinstance(size, str) and _SIZE.fullmatch(size) for size in value
    ):
        return '`sizes` must be a list such as ["48x48"] or ["any"].'
    return None


def _theme(value: Any) -> str | None:
    return None if value in THEMES else f"`theme` must be one of {', '.join(THEMES)}."


_CHECKS = {"src": _src, "mimeType": _mime_type, "sizes": _sizes, "theme": _theme}
