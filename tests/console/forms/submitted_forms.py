"""What a browser sends of a page's form when it is submitted as it is shown."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any


@dataclass
class _Field:
    name: str
    value: str = ""
    options: list[str] = field(default_factory=list)


class SentForm(HTMLParser):
    """Reads the fields of the page's only form with the method POST.

    Fields of other forms, buttons, and the content of `<template>` are left out.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._inside = False
        self._templates = 0
        self._text: _Field | None = None
        self._select: _Field | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "form" and has.get("method") == "post" and "c-form" in has.get("class", ""):
            self._inside = True
        elif tag == "template":
            self._templates += 1
        elif tag == "option" and self._select is not None:
            self._option(has)
        elif self._inside and not self._templates and has.get("name") and "form" not in has:
            self._begin(tag, has)

    def _begin(self, tag: str, has: dict[str, str]) -> None:
        if tag == "textarea":
            self._text = _Field(has["name"])
        elif tag == "select":
            self._select = _Field(has["name"])
        elif tag == "input" and has.get("type") not in ("checkbox", "radio", "file", "submit"):
            self.fields[has["name"]] = has.get("value", "")
        elif tag == "input" and "checked" in has:
            self.fields[has["name"]] = has.get("value", "on")

    def _option(self, has: dict[str, str]) -> None:
        assert self._select is not None
        self._select.options.append(has.get("value", ""))
        if "selected" in has:
            self._select.value = has.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.value += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "template":
            self._templates -= 1
        elif tag == "textarea" and self._text is not None:
            # A browser drops the first line break of a text area, and sends CRLF.
            text = self._text.value.replace("\r\n", "\n").removeprefix("\n")
            self.fields[self._text.name] = text.replace("\n", "\r\n")
            self._text = None
        elif tag == "select" and self._select is not None:
            chosen = self._select
            first = chosen.options[0] if chosen.options else ""
            self.fields[chosen.name] = chosen.value or first
            self._select = None


def problems(form: Any, where: str) -> str:
    """Return what a form says is wrong with a field: of itself, of its part, or of the first row.

    `where` is a field (`url`), a field of rows (`query.value`), the rows themselves (`messages`), or
    empty for what concerns the whole part.
    """
    rows, _, name = where.rpartition(".")
    if rows:
        texts = getattr(form.part, rows).filled[0].errors[name]
    elif not where:
        texts = form.part.non_field_errors()
    elif where in form.fields:
        texts = form.errors[where]
    else:
        in_part = where in getattr(form.part, "fields", ())
        texts = form.part.errors[where] if in_part else getattr(form.part, where).errors
    return " ".join(texts)
