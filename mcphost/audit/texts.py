"""Clean text from outside for a database column: no U+0000, no lone surrogates, limited length."""

from typing import Any

MAX_TEXT = 512


def clean_text(text: str) -> str:
    r"""`text` with U+0000 and lone surrogates written as `\uXXXX`, cut to 512 characters."""
    if len(text) > MAX_TEXT:
        text = text[: MAX_TEXT - 1] + "…"
    if "\0" in text:
        text = text.replace("\0", "\\u0000")
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def clean_json(value: Any) -> Any:
    """JSON with `clean_text` applied to every string in it, keys too."""
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return value
