"""What a caller finds in what a tenant offers. What it may not know of is not there for it."""

from collections.abc import Mapping

from mcphost.catalogue.selectors import (
    Offering,
    PromptSnapshot,
    ResourceSnapshot,
    TemplateSnapshot,
    ToolSnapshot,
)
from mcphost.protocol.laid_out import LaidOut
from mcphost.protocol.uris import normalize

Scopes = frozenset[str]
Found = tuple[ResourceSnapshot | TemplateSnapshot, Mapping[str, str]]
"""What is read at a URI, and the values of a template's variables."""


def tool(offering: Offering, name: str, scopes: Scopes) -> ToolSnapshot | None:
    found = offering.tool(name)
    return found if found is not None and found.scopes <= scopes else None


def prompt(offering: Offering, name: str, scopes: Scopes) -> PromptSnapshot | None:
    found = offering.prompt(name)
    return found if found is not None and found.scopes <= scopes else None


def resource(offering: Offering, uri: str, scopes: Scopes) -> Found | None:
    """What is read at a URI: the resource of that name, else the first template that it fits.

    Raises ValueError for what can be the URI of nothing, saying why.
    """
    return at(offering, normalize(uri), scopes)


def at(offering: Offering, uri: str, scopes: Scopes) -> Found | None:
    """The same for a URI in its normal form."""
    found = offering.resource(uri)
    if found is not None and found.scopes <= scopes:
        return found, {}
    laid = LaidOut(uri)
    for one in offering.templates:
        values = one.uri_template.match_laid_out(laid) if one.scopes <= scopes else None
        if values is not None:
            return one, values
    return None


def template(offering: Offering, text: str, scopes: Scopes) -> TemplateSnapshot | None:
    """The template that is written so."""
    found = offering.template(text)
    return found if found is not None and found.scopes <= scopes else None
