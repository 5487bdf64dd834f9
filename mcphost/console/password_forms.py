"""Forms in which people choose their own password. No other person ever types it."""

from typing import Any

from django.contrib.auth import password_validation
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from mcphost.console.forms import forms

NAME_LENGTH = 150
RULES = "At least 8 characters; not a common password."
"""What AUTH_PASSWORD_VALIDATORS check, in one line."""


class ChosenPasswordForm(forms.ConsoleForm):
    """A new password, typed twice, for the account `user`."""

    password = forms.password("New password")
    again = forms.password("Repeat new password")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user = user
        self.fields["password"].help_text = RULES

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        password_validation.validate_password(password, self._user)
        return password

    def clean_again(self) -> str:
        if self.cleaned_data["again"] != self.cleaned_data.get("password"):
            raise ValidationError("The two passwords do not match.")
        return ""


class SetUpForm(ChosenPasswordForm):
    """What a person chooses who sets up an account."""

    first_name = forms.text("First name (optional)", maxlength=NAME_LENGTH)
    last_name = forms.text("Last name (optional)", maxlength=NAME_LENGTH)
    password = forms.password("Password")
    again = forms.password("Repeat the password")
    field_order = ("first_name", "last_name", "password", "again")

    def clean(self) -> dict[str, Any]:
        submitted: dict[str, Any] = super().clean() or {}
        for name in ("first_name", "last_name"):
            if len(submitted.get(name, "")) > NAME_LENGTH:
                self.add_error(name, f"Use at most {NAME_LENGTH} characters.")
        return submitted
