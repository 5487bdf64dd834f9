"""Each field of a form that has a measure says in which unit: numbers beside the input, files in their help."""

import re
from collections.abc import Iterator

import pytest
from django import forms as django_forms
from django.test import Client

from mcphost.console.forms.forms import ConsoleForm
from mcphost.console.urls import urlpatterns
from tests.console.tenant_data import Things

SIZE = re.compile(r"at most [\d.]+ [KM]iB")


def all_forms(base: type[ConsoleForm] = ConsoleForm) -> Iterator[type[ConsoleForm]]:
    for form in base.__subclasses__():
        if not form.__subclasses__():
            yield form
        yield from all_forms(form)


def fields_of(widget: type[django_forms.Widget]) -> list[tuple[str, django_forms.Field]]:
    return [
        (f"{form.__name__}.{name}", field)
        for form in all_forms()
        for name, field in form.base_fields.items()
        if form.__module__.startswith("mcphost.") and isinstance(field.widget, widget)
    ]


def test_each_number_has_its_unit_beside_it() -> None:
    numbers = fields_of(django_forms.NumberInput)
    units = {name: getattr(field.widget, "unit", "") for name, field in numbers}
    assert all(units.values()), units
    assert len(units) > 8
    assert urlpatterns, "the modules of all pages are loaded"


def test_each_file_has_the_limit_of_its_size_in_its_help() -> None:
    files = fields_of(django_forms.FileInput)
    assert [name for name, field in files if not SIZE.search(str(field.help_text))] == []
    assert files


@pytest.mark.django_db
def test_a_page_shows_the_unit_beside_its_input(operator: Client, acme: Things) -> None:
    page = operator.get("/admin/t/acme/tools/new/?kind=http").content.decode()
    assert re.search(
        r'<input type="number" name="timeout_seconds"[^>]*><span[^>]*>seconds</span>', page
    )
