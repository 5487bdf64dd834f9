"""What of a tool's result must never be written (spec: server/tools, "Tool Result")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcphost.audit.redaction import REDACTED, Redactor


@dataclass(frozen=True, slots=True)
class ResultRedactor:
    """Redacts a `CallToolResult`. `structured` is the redactor of the output schema.

    Where structured content may hold a secret, the unstructured content beside it is taken out
    altogether: it says the same in words, and words have no schema.
    """

    structured: Redactor

    def redact(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result as it may be written; itself when nothing of it is secret."""
        if self.structured.is_empty or "structuredContent" not in result:
            return result
        structured = self.structured.redact(result["structuredContent"])
        return {**result, "content": REDACTED, "structuredContent": structured}
