"""The form that saves a trial that has ended, with what is expected of the call from then on."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms as django_forms

from mcphost.catalogue.models import MAX_SAVED_NAME
from mcphost.catalogue.saved_calls import Expectation

EXPECTED_OUTCOMES: Final[Mapping[str, str]] = {
    "complete": "It completes",
    "tool_error": "It ends with an error of the tool",
    "refused": "It is refused",
}
"""How a call may end, as `trial_results.outcome` has it."""


class SavingForm(django_forms.Form):
    """A name, and what is expected: at first what the trial gave. `structured` is its structured content."""

    name = django_forms.CharField(label="Name", max_length=MAX_SAVED_NAME)
    outcome = django_forms.ChoiceField(label="Expect that", choices=list(EXPECTED_OUTCOMES.items()))
    contains = django_forms.CharField(
        label="The result contains",
        max_length=1000,
        required=False,
        help_text="A text, or empty for any result.",
    )
    same = django_forms.BooleanField(
        label="The structured content is equal to that of this run", required=False
    )

    def __init__(self, data: Any, outcome: str, structured: Any) -> None:
        super().__init__(data, prefix="saved", initial={"outcome": outcome})
        self._structured = structured
        if structured is None:
            del self.fields["same"]

    def expectation(self) -> Expectation:
        """Return what a valid form expects."""
        sent = self.cleaned_data
        structured = self._structured if sent.get("same") else None
        return Expectation(sent["outcome"], sent["contains"], structured)
