"""Edits of stored values: refused when another user changed them since the form was shown.

The page of the form holds a fingerprint of the values that it was shown with. They are compared
with those of the locked row, in the transaction of the change, so that no other change is undone
unseen.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction
from django.http import Http404, HttpRequest

from mcphost.console.base import query_text
from mcphost.console.forms.forms import ConsoleForm

Result = TypeVar("Result")
Values = Mapping[str, Any]
"""Stored values by name, such as those of a row. JSON can hold them."""

BASED_ON = "based_on"
"""The form's hidden field: the fingerprint of the values that it was shown with."""

STATE = "was"
"""The hidden field of forms that serve something: the state that it was shown in."""

WHAT_DIFFERS = (
    "What differs is shown below the form's buttons. Change the form, or save again to replace it."
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A value before and after a change."""

    label: str
    before: Any
    after: Any


def differences(before: Values, after: Values, label: Callable[[str], str]) -> list[Difference]:
    """Return the values that differ; `label` returns the label of a name."""
    return [
        Difference(label(name), before.get(name), after.get(name))
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]


class Edit:
    """A change of stored values by a form.

    `stored` are the values as they were when this request began. `based_on` belongs into the form's
    hidden field; `conflict` is what differs from the stored values, once a change was refused.
    """

    conflict: Sequence[Difference] = ()

    def __init__(self, request: HttpRequest, form: ConsoleForm, stored: Values) -> None:
        self._form, self._stored = form, stored
        self.based_on = query_text(request.POST, BASED_ON) or _fingerprint(stored)

    @property
    def is_current(self) -> bool:
        """Whether the form was shown with the values as they were when this request began."""
        return self.based_on == _fingerprint(self._stored)

    def save(
        self,
        name: str,
        submitted: Values,
        locked: Callable[[], Values],
        verb: Callable[[], Result],
    ) -> Result | None:
        """Return a service's result; None if the change was refused, with the reasons in the form.

        `locked` locks the row and returns its values. After a conflict has been shown, saving again
        replaces the other user's change. Raises Http404 if the row was deleted meanwhile.
        """
        try:
            with transaction.atomic():
                # Values that are stored already are no conflict: the form was sent twice.
                if _fingerprint(locked()) in {self.based_on, _fingerprint(submitted)}:
                    return self._form.attempt(verb)
        except ObjectDoesNotExist:
            raise Http404 from None
        self.conflict = differences(self._stored, submitted, self._label)
        self.based_on = _fingerprint(self._stored)
        self._form.add_error(None, f"{name} was changed meanwhile by another user. {WHAT_DIFFERS}")
        return None

    def _label(self, name: str) -> str:
        field = self._form.fields.get(name)
        return str(field.label) if field is not None else name.capitalize()


def _fingerprint(values: Values) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
