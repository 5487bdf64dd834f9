"""Redaction of a tool's result before it is written (spec: server/tools, "Tool Result")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcphost.audit.redaction import REDACTED, Redactor


@dataclass(frozen=True, slots=True)
class ResultRedactor:
    """Redacts a `CallToolResult`. `structured` is the redactor of the output schema.

    If structured content may contain a secret, the unstructured content beside it is removed
    completely: it repeats the same data as text, and text has no schema.
    """

    structured: Redactor

    def redact(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result as it may be written; the same object if nothing of it is secret."""
        if not self.structured.rules or "structuredContent" not in result:
            return result
        structured = self.structured.redact(result["structuredContent"])
        return {**result, "content": REDACTED, "structuredContent": structured}
