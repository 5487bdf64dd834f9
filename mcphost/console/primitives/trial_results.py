"""The outcome of a trial's round, prepared for its page. All of it is untrusted text."""

import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcphost.console.forms.prompts import blob_of
from mcphost.console.forms.uploads import Blob
from mcphost.serving.execution.trials import TrialResult

MAX_TEXT: Final = 20_000
"""Characters; a longer text is cut after them."""


@dataclass(frozen=True, slots=True)
class ResultBlock:
    """One block of a result: a text, a file, or an address. Only an actual image is an image."""

    type: str
    text: str = ""
    cut: bool = False
    blob: Blob | None = None
    uri: str = ""


def blocks(result: Mapping[str, Any]) -> Iterator[ResultBlock]:
    """Yield the content of a tool's result."""
    for content in result.get("content", ()):
        inside = content.get("resource", content)
        text = str(inside.get("text", "") or inside.get("name", ""))
        yield ResultBlock(
            type=str(content.get("type", "")),
            text=text[:MAX_TEXT],
            cut=len(text) > MAX_TEXT,
            blob=_blob(content),
            uri=str(inside.get("uri", "")),
        )


def outcome(trial_result: TrialResult) -> str:
    """Return the outcome of a round in a word, as the records have it."""
    if trial_result.error is not None:
        return "refused"
    if trial_result.requests or trial_result.state:
        return "input_required"
    return (
        "tool_error" if trial_result.result and trial_result.result.get("isError") else "complete"
    )


def _blob(content: Mapping[str, Any]) -> Blob | None:
    try:
        return blob_of(content)
    except (binascii.Error, ValueError, TypeError):
        return None  # a tool may say anything
