"""The OpenAPI document: it is the committed one, right under 3.1, and its examples work."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema_rs
import orjson
import pytest
from django.test import Client

from mcphost.api.problems import MEDIA_TYPE
from mcphost.api.resources.openapi_imports import EXAMPLE
from mcphost.api.resources.versions import VERSION_EXAMPLE
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import primitive
from mcphost.catalogue.services import update
from mcphost.tenant_file.plans import make_plan
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import ROLE_PERMISSIONS, Permission, Role
from mcphost.vault import lifecycle
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.url_walk import ROUTES, RUNNING, Route, ids_of
from tests.cast import ACTOR, Cast
from tests.console.url_walk import undone
from tests.openapi_document import FILE, made

ONLY_IN_3_0 = ("nullable", "example", "discriminator")
DOCUMENT: dict[str, Any] = orjson.loads(FILE.read_bytes())


def parts(value: Any, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every object inside a value, with its path."""
    if isinstance(value, dict):
        yield path, value
        for name, part in value.items():
            yield from parts(part, f"{path}/{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from parts(part, f"{path}/{number}")


@cache
def validator(ref: str) -> Any:
    schema = {"$ref": ref, "components": DOCUMENT["components"]}
    return jsonschema_rs.validator_for(schema, validate_formats=True)


def described(route: Route) -> dict[str, Any]:
    """Return what the document says of an operation."""
    path = route.path({name: f"{{{name}}}" for name in route.ids}).removeprefix("/api/v1")
    operation: dict[str, Any] = DOCUMENT["paths"][path][route.method.lower()]
    return operation


def test_the_committed_document_is_that_of_the_routes() -> None:
    """`python -m tests.openapi_document` writes it."""
    assert FILE.read_bytes() == made()


@pytest.mark.django_db
def test_the_document_is_served_to_everyone() -> None:
    response = Client().get("/api/v1/openapi.json")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.content + b"\n" == FILE.read_bytes()


def test_its_schemas_are_of_json_schema_2020_12_with_no_word_of_openapi_3_0() -> None:
    assert DOCUMENT["openapi"] == "3.1.1"
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema_rs.meta.validate(
            {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}
        )
        validator(f"#/components/schemas/{name}")
        for path, part in parts(schema, name):
            if not path.endswith("/properties"):
                assert not set(part).intersection(ONLY_IN_3_0), path
                assert not isinstance(part.get("exclusiveMinimum"), bool)
                assert not isinstance(part.get("exclusiveMaximum"), bool)


def test_every_reference_leads_somewhere_and_every_name_is_unique() -> None:
    targets = {
        f"#/components/{kind}/{name}"
        for kind, things in DOCUMENT["components"].items()
        for name in things
    }
    references = {part["$ref"] for _, part in parts(DOCUMENT) if "$ref" in part}
    assert references <= targets
    ids = [part["operationId"] for _, part in parts(DOCUMENT) if "operationId" in part]
    assert len(ids) == len(set(ids)) == len(ROUTES)


def test_every_operation_describes_its_errors_conditions_and_example() -> None:
    for route in ROUTES:
        operation = described(route)
        names = {parameter["name"] for parameter in operation.get("parameters", ())}
        assert ("If-Match" in names) is route.operation.conditional, route
        assert ("Idempotency-Key" in names) is (route.method == "POST"), route
        problem = operation["responses"]["default"]["content"][MEDIA_TYPE]
        assert problem["schema"] == {"$ref": "#/components/schemas/Problem"}
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert content["example"], route
            assert validator(content["schema"]["$ref"]).is_valid(content["example"]), route


def _edit(ids: Mapping[str, Any], route: Route) -> None:
    row = primitive(route.id_of("primitive_id", dict(ids)))
    assert row is not None
    fields: dict[str, Any] = {
        name: getattr(row.fields, name) for name in row.fields.__dataclass_fields__
    }
    update(row.id, PrimitiveFields(**{**fields, "title": "Edited"}), ACTOR)


def _publish_again(ids: Mapping[str, Any], route: Route) -> None:
    _edit(ids, route)
    services.publish(route.id_of("primitive_id", dict(ids)), ACTOR)


def _move(*verbs: Callable[..., object]) -> Callable[[Mapping[str, Any], Route], None]:
    def move(ids: Mapping[str, Any], route: Route) -> None:
        for verb in verbs:
            verb(route.id_of("primitive_id", dict(ids)), ACTOR)

    return move


BEFORE: Mapping[str, Callable[[Mapping[str, Any], Route], None]] = {
    "publish": _edit,
    "enable": _move(services.disable),
    "restore": _move(services.archive),
    "back": _publish_again,
}
"""What must have happened before a verb of a primitive, by its last word."""


def prepared(route: Route, ids: dict[str, Any]) -> dict[str, Any]:
    """Let happen what a request needs; return the ids of its address."""
    if route.name == "key_retire":
        return {**ids, "key_id": lifecycle.rotate(ACTOR)}
    if route.name == "key_destroy":
        lifecycle.rotate(ACTOR, compromised=True)
    if "primitive_id" in route.ids:
        if (prepare := BEFORE.get(route.name.split("_")[-1])) is not None:
            prepare(ids, route)
        if route.method == "DELETE":
            _move(services.archive)(ids, route)
    return ids


def completed(
    client: ApiClient, body: dict[str, Any], route: Route, ids: dict[str, Any]
) -> dict[str, Any]:
    """Return an example with what only this server knows."""
    if body.get("version_id") == VERSION_EXAMPLE:
        return {**body, "version_id": str(route.id_of("version_id", ids))}
    if "replaces" in body:
        return {**body, "replaces": ids["key_id"]}
    if route.name == "import_apply":
        digest = client.send("POST", route.path(ids).replace("apply", "preview"), EXAMPLE).json()
        return {**body, "digest": digest["digest"]}
    if "digest" in body:
        tenant = Tenant.objects.get(slug=ids["slug"]).pk
        return {**body, "digest": make_plan(tenant, body["content"].encode()).digest}
    return body


def client_for(route: Route, clients: ApiClients) -> ApiClient:
    """Return the client of a caller who may do it."""
    permission = route.operation.permission
    if permission is Permission.VIEW_PAYLOADS:
        return clients.auditor
    by_owner = route.is_of_tenant and permission in {None, *ROLE_PERMISSIONS[Role.OWNER]}
    return clients.owner if by_owner else clients.staff


def send_example(client: ApiClient, route: Route, ids: dict[str, Any]) -> Any:
    """Send the request of the document."""
    content = described(route).get("requestBody", {}).get("content", {})
    body = next((part["example"] for part in content.values()), None)
    if body is not None:
        body = completed(client, body, route, ids)
    if route.method == "PUT" and "kind" in body:  # which never changes
        row = primitive(route.id_of("primitive_id", ids))
        assert row is not None
        body = {**body, "name": row.name, "config": row.fields.config}
    etag = "*" if route.operation.conditional else ""
    media_type = next(iter(content), "application/json")
    return client.send(
        route.method, route.path(ids), body, etag=etag, **{"Content-Type": media_type}
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("jobs_here")
def test_every_example_works_and_every_response_fits_its_schema(
    cast: Cast, clients: ApiClients
) -> None:
    ids, faults = ids_of(cast.acme), []
    for route in (route for route in ROUTES if route.name not in RUNNING):
        with undone():
            its_ids = prepared(route, ids)
            response = send_example(client_for(route, clients), route, its_ids)
        expected = described(route)["responses"].get(str(response.status_code))
        media_types = (expected or {}).get("content", {})
        content = media_types.get("application/json")
        if expected is None or not 200 <= response.status_code < 300:
            faults.append((str(route), response.status_code, response.content))
        elif content is None and media_types:
            assert response.headers["Content-Type"].partition(";")[0] in media_types, route
        elif content is None:
            assert response.content == b""
        elif errors := list(validator(content["schema"]["$ref"]).iter_errors(response.json())):
            faults.append((str(route), response.status_code, errors))
        missing = set((expected or {}).get("headers", {})) - {"Idempotent-Replayed"}
        assert missing <= set(response.headers), route
    assert faults == []


@pytest.mark.django_db
def test_problems_fit_their_schema(clients: ApiClients) -> None:
    problem = validator("#/components/schemas/Problem")
    tools = "/api/v1/tenants/acme/tools"
    responses = (
        clients.anonymous.get(tools),
        clients.owner.get(f"{tools}?x=1"),
        clients.owner.send("POST", tools, {"name": 5}),
        clients.stranger.get(tools),
    )
    for response in responses:
        problem.validate(response.json())
