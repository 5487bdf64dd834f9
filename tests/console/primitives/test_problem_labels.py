"""Whatever refuses a tool, its problems are said with the labels of the form, never with the paths of the code."""

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client

from mcphost.catalogue import selectors, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.vault.models import StoredSecret
from tests.console.primitives.test_http_tools import EVERYTHING_WRONG, form
from tests.console.tenant_data import ACTOR, Things
from tests.tenant_file.conftest import store_secret

pytestmark = pytest.mark.django_db

TOOLS = "/admin/t/acme/tools/"
_PATH = re.compile(
    r"\b(?:config|request|response|fields|icons|questions)\.[a-z0-9_]+(?:\.[a-z0-9_]+)*"
)
_HIDDEN = re.compile(r"<(script|style|textarea|pre|code|template)\b.*?</\1>|<[^>]*>", re.DOTALL)

SECRET = "{secrets.api_key}"
REQUESTS: dict[str, dict[str, Any]] = {
    "header": {"headers": [{"name": "X-Key", "value": SECRET}]},
    "query": {"query": [{"name": "key", "value": SECRET}]},
    "body": {"method": "POST", "body": {"type": "json", "value": {"key": SECRET}}},
    "form": {
        "method": "POST",
        "body": {"type": "form", "fields": [{"name": "key", "value": SECRET}]},
    },
}


def visible(page: Any) -> str:
    return unescape(_HIDDEN.sub(" ", page.content.decode()))


def fields_of(request: dict[str, Any]) -> PrimitiveFields:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    whole = {"method": "GET", "url": "https://api.example.com/", **request}
    return PrimitiveFields(
        "order", {"input_schema": schema, "request": whole}, kind="http", description="Reads."
    )


def by_page(client: Client, url: str, row: Any) -> Any:
    return client.post(
        f"{url}publish/", {"based_on": row.fingerprint, "was": row.state.value}, follow=True
    )


def by_list(client: Client, url: str, row: Any) -> Any:
    chosen = f"{row.id}:{row.fingerprint}:{row.state.value}"
    return client.post(f"{TOOLS}bulk/", {"verb": "publish", "chosen": chosen}, follow=True)


def by_details(client: Client, url: str, row: Any) -> Any:
    return client.get(url)


def by_enabling(client: Client, url: str, row: Any) -> Any:
    services.publish(row.id, ACTOR)
    services.disable(row.id, ACTOR)
    StoredSecret.objects.filter(name="api_key").delete()
    version = selectors.primitive(row.id).version
    return client.post(f"{url}enable/", {"based_on": version}, follow=True)


def by_trial(client: Client, url: str, row: Any) -> Any:
    return client.post(
        f"{url}try/", form(name="order", **{"headers-0-name": "X-Key", "headers-0-value": SECRET})
    )


WAYS: tuple[Callable[[Client, str, Any], Any], ...] = (by_page, by_list, by_details, by_trial)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_refusal_to_publish_names_the_fields_of_the_form(
    operator: Client, acme: Things, name: str
) -> None:
    row = services.create(acme.tenant, fields_of(REQUESTS[name]), ACTOR)
    for way in WAYS:
        page = way(operator, f"{TOOLS}{row.id}/", row)
        assert page.status_code == 200
        text = visible(page)
        assert not _PATH.findall(text), (way.__name__, name)
        if way is not by_trial:
            assert "api_key" in text, way.__name__


def test_a_refusal_to_enable_names_the_fields_of_the_form(operator: Client, acme: Things) -> None:
    store_secret(acme.tenant)
    row = services.create(acme.tenant, fields_of(REQUESTS["header"]), ACTOR)
    page = by_enabling(operator, f"{TOOLS}{row.id}/", row)
    assert not _PATH.findall(visible(page))


def wrong_forms() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "new/", form(**EVERYTHING_WRONG)
    yield "new/", form(input_schema=json.dumps({"type": "array"}), url="nowhere")
    yield "new/", {"kind": "script", "name": "a b", "code": "import os", "icons-0-src": "x"}
    yield (
        "new/",
        {"kind": "python", "name": "", "function": "none.such", "time_limit_seconds": "-1"},
    )
    yield "import/", {"document": "{}", "header_name": "a b", "base_url": "x"}


@pytest.mark.django_db(transaction=True)
def test_no_problem_of_a_form_shows_a_path(operator: Client, acme: Things) -> None:
    for path, fields in wrong_forms():
        page = operator.post(f"{TOOLS}{path}", {**fields, "_publish": ""})
        assert page.status_code == 200, path
        assert not _PATH.findall(visible(page)), path


def test_a_function_that_is_not_there_is_refused_in_words(staff: Client, acme: Things) -> None:
    fields = {"verb": "grant", "function": "none.such"}
    page = staff.post("/admin/t/acme/functions/change/", fields, follow=True)
    said = [str(message) for message in page.context["messages"]]
    assert said
    assert not any(message.startswith("function:") for message in said)
