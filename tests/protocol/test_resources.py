"""Tests of the descriptions of resources and templates."""

from mcphost.protocol.messages import response
from mcphost.protocol.resources import (
    ResourceListing,
    TemplateListing,
    describe_resource,
    describe_template,
    resource_not_found,
)
from mcphost.protocol.results import cacheable, complete
from tests.wire import check_response

SERVER = {"name": "mcphost", "version": "1"}
ICON = {"src": "https://example.com/a.png"}
SHARED = {
    "name": "notes",
    "title": "Notes",
    "description": "All of them",
    "mimeType": "text/plain",
    "annotations": {"audience": ["user"], "priority": 0.5},
    "icons": [ICON],
}
DECORATION = ("Notes", "All of them", "text/plain")


def test_a_resource_listing_has_the_fields_of_the_specification() -> None:
    assert describe_resource(ResourceListing("docs:a", "a")) == {"uri": "docs:a", "name": "a"}
    annotations = SHARED["annotations"]
    listing = ResourceListing("docs:a", "notes", *DECORATION, 0, annotations, (ICON,))
    resource = describe_resource(listing)
    assert resource == {"uri": "docs:a", **SHARED, "size": 0}
    result = cacheable(complete({"resources": [resource]}, SERVER), 0, "private")
    check_response("resources/list", response(1, result))


def test_a_template_listing_has_the_fields_of_the_specification() -> None:
    few = describe_template(TemplateListing("docs:{a}", "a"))
    assert few == {"uriTemplate": "docs:{a}", "name": "a"}
    listing = TemplateListing("docs:{a}", "notes", *DECORATION, SHARED["annotations"], (ICON,))
    template = describe_template(listing)
    assert template == {"uriTemplate": "docs:{a}", **SHARED}
    result = cacheable(complete({"resourceTemplates": [template, few]}, SERVER), 0, "private")
    check_response("resources/templates/list", response(1, result))


def test_a_missing_resource_is_named_in_the_error() -> None:
    error = resource_not_found("docs:b")
    assert (error.code, error.data) == (-32602, {"uri": "docs:b"})
