"""The form, or the address to open, of one question of a tool (specification: client/elicitation)."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from django import forms as django_forms

from mcphost.console.forms.schema_forms import ValueFields

METHOD: Final = "elicitation/create"
ACCEPT, DECLINE, CANCEL = "accept", "decline", "cancel"
URL_MODE: Final = "url"


class QuestionForm(ValueFields):
    """A question with its fields, or with an address to open. `action` is the button pressed."""

    action = django_forms.ChoiceField(
        choices=[(ACCEPT, "Accept"), (DECLINE, "Decline"), (CANCEL, "Cancel")],
        widget=django_forms.HiddenInput(),
        error_messages={"required": "Accept, decline or cancel."},
    )

    def __init__(self, params: Mapping[str, Any], key: str, data: Any) -> None:
        self.key = key
        self.message = str(params.get("message", ""))
        self.opens = params.get("mode") == URL_MODE
        self.url = _openable(params.get("url")) if self.opens else ""
        schema = {} if self.opens else params.get("requestedSchema", {})
        # Without hyphens in the key no field of a question has the name of another question's.
        super().__init__(schema, data, f"answer-{quote(key, safe='').replace('-', '%2D')}")

    @property
    def link_text(self) -> str:
        """What to show as the link: the host first, because users decide by it."""
        return f"Open {urlsplit(self.url).hostname} in a new window" if self.url else ""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("action") == ACCEPT and not self.opens:
            self.check_values()
        else:
            self.forget_problems()
        return cleaned

    def response(self) -> dict[str, Any]:
        """Return the `ElicitResult` of a valid form."""
        action = self.cleaned_data["action"]
        if action == ACCEPT and not self.opens:
            return {"action": action, "content": self.filled_values()}
        return {"action": action}


def form_of(request: Mapping[str, Any], key: str, data: Any = None) -> QuestionForm:
    """Return the form for an elicitation request: the whole request. `key` is its name in the call.

    Raises ValueError for a request that is not an elicitation.
    """
    if request.get("method") != METHOD:
        raise ValueError("only elicitation requests have a form")
    return QuestionForm(request.get("params", {}), key, data)


def _openable(url: Any) -> str:
    """Return the address if a browser may be sent there; empty otherwise."""
    try:
        parts = urlsplit(str(url))
        return str(url) if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""
