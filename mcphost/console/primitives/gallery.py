"""The gallery: templates that fill in the form of a new tool.

Each template is a file in the folder `console/gallery`; adding a file adds a template. A template
that calls a service names it by an address, which an operator replaces by their own.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from django.core.exceptions import ValidationError
from django.http import Http404, QueryDict

from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console.forms import forms
from mcphost.egress.addresses import AllowedHost, Target
from mcphost.egress.errors import EgressRequestError
from mcphost.kinds.kind import Strict

FOLDER: Final = Path(__file__).parent.parent / "gallery"
FILL: Final = "gallery-fill"
"""The id of the form element that the field for the address belongs to."""


class GalleryTemplate(Strict):
    """A template. `about` says what it shows, `address` is where the service's address stands in
    `config`; a template without one needs no service."""

    key: str
    kind: Literal["http", "script"]
    title: str
    about: str
    name: str
    tool_title: str
    description: str = ""
    address: str = ""
    time_limit_seconds: float | None = None
    config: Mapping[str, Any]

    def fields(self, address: str = "") -> PrimitiveFields:
        """Return the fields of a new tool that calls the service at `address`, if one is given."""
        return PrimitiveFields(
            self.name,
            _replaced(self.config, self.address, address or self.address),
            kind=self.kind,
            title=self.tool_title,
            description=self.description,
            time_limit_seconds=self.time_limit_seconds,
        )


class AddressForm(forms.ConsoleForm):
    """The address of the service that a template calls. `hosts` are those that the tenant allows;
    none: all."""

    address = forms.text(
        "Address of the service",
        "Such as https://shop.example.com/api. It is filled in below.",
        inputmode="url",
        spellcheck="false",
        form=FILL,
    )

    def __init__(self, sent: QueryDict | None, hosts: Sequence[str]) -> None:
        super().__init__(sent)
        self._hosts = [AllowedHost.parse(host) for host in hosts]

    def clean_address(self) -> str:
        """Return the address without a slash at its end."""
        address: str = self.cleaned_data["address"]
        try:
            target = Target.parse(address)
        except EgressRequestError as error:
            raise ValidationError(str(error)) from None
        if "?" in address or "#" in address:
            raise ValidationError("The address has no query and no fragment.")
        if self._hosts and not any(host.matches(target) for host in self._hosts):
            raise ValidationError(
                f"{target.authority} is not among the hosts that tools may call. An owner adds it in "
                "the settings of the tenant."
            )
        return target.url.rstrip("/")


class Picked:
    """A template that an operator has picked, and the form for the address of its service."""

    def __init__(self, template: GalleryTemplate, sent: QueryDict, hosts: Sequence[str]) -> None:
        self.template = template
        submitted = sent if "address" in sent else None
        self.form = AddressForm(submitted, hosts) if template.address else None

    @property
    def has_address(self) -> bool:
        """Whether it can be saved as it is: it calls no service, or the operator's."""
        return self.form is None or self.form.is_valid()

    def fields(self) -> PrimitiveFields:
        """Return the fields of the new tool, with the template's own address unless another one is
        given that is right."""
        if self.form is None or not self.form.is_valid():
            return self.template.fields()
        return self.template.fields(self.form.cleaned_data["address"])


def picked(sent: QueryDict, hosts: Sequence[str]) -> Picked | None:
    """Return the template that a page's query names, if any. Raises Http404 for one that there is
    not."""
    key = sent.get("template")
    if key is None:
        return None
    if key not in templates():
        raise Http404
    return Picked(templates()[key], sent, hosts)


@cache
def templates() -> Mapping[str, GalleryTemplate]:
    """Return all templates by their keys, those without code last."""
    gallery_templates = [
        GalleryTemplate(key=path.stem, **tomllib.loads(path.read_text()))
        for path in sorted(FOLDER.glob("*.toml"))
    ]
    gallery_templates.sort(key=lambda template: template.kind, reverse=True)
    return {template.key: template for template in gallery_templates}


def _replaced(value: Any, old: str, new: str) -> Any:
    """Return a copy of JSON with a text replaced in all its texts."""
    match value:
        case str():
            return value.replace(old, new) if old else value
        case list():
            return [_replaced(member, old, new) for member in value]
        case dict():
            return {name: _replaced(member, old, new) for name, member in value.items()}
        case _:
            return value
