"""What a body may be: one reading, one media type, no coding. And tokens are renewed once for an ETag."""

import gzip
from typing import Any

import orjson
import pytest

from mcphost.api.bodies import MERGE_PATCH
from tests.api.client import ApiClient
from tests.api.samples import SAMPLES
from tests.vault.parallel_threads import at_once

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
ACME = "/api/v1/tenants/acme"
RENEWALS = 20


def problem_of(response: Any) -> tuple[int, str]:
    members = response.json()
    return members["status"], members["type"].rpartition(":")[2]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"title": "One", "title": "Two"}', "title"),
        (b'{"title": "One", "\\u0074itle": "Two"}', "title"),
        (b'{"title": "One", "x": [{"inner": 1, "inner": 1}]}', "inner"),
    ],
)
def test_a_name_that_is_twice_in_one_object_is_refused_by_name(
    owner: ApiClient, body: bytes, name: str
) -> None:
    response = owner.send("PATCH", ACME, body, etag="*")
    assert problem_of(response) == (400, "malformed-request")
    assert f'"{name}"' in response.json()["detail"]
    assert owner.get(ACME).json()["title"] == "Acme"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "media_type"),
    [
        ("PATCH", "*/*"),
        ("PATCH", "application/*"),
        ("PATCH", "application/json; charset=utf-16"),
        ("PATCH", "application/json; charset=latin-1"),
        ("PATCH", "application/jsonp"),
        ("PUT", MERGE_PATCH),
        ("POST", MERGE_PATCH),
    ],
)
def test_other_media_types_than_those_of_the_document_are_refused(
    owner: ApiClient, method: str, media_type: str
) -> None:
    path = f"{ACME}/secrets" if method == "POST" else ACME
    response = owner.send(method, path, {"title": "Mine"}, etag="*", **{"Content-Type": media_type})
    assert problem_of(response) == (415, "unsupported-media-type")
    assert owner.get(ACME).json()["title"] == "Acme"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "media_type", ["Application/JSON", 'application/json; charset="UTF-8"', MERGE_PATCH]
)
def test_a_media_type_may_be_written_in_each_way_of_http(owner: ApiClient, media_type: str) -> None:
    response = owner.send("PATCH", ACME, {"title": "New"}, etag="*", **{"Content-Type": media_type})
    assert response.status_code == 200


@pytest.mark.django_db
def test_a_compressed_body_is_refused(owner: ApiClient) -> None:
    body = gzip.compress(orjson.dumps({"title": "Mine"}))
    response = owner.send("PATCH", ACME, body, etag="*", **{"Content-Encoding": "gzip"})
    assert problem_of(response) == (415, "unsupported-media-type")


@pytest.mark.django_db
@pytest.mark.parametrize("limit", ["1.0", "%2B1", "1_0", " 1", "\u0661", "", "-1", "0", "101"])
def test_a_limit_is_a_whole_number_in_digits(owner: ApiClient, limit: str) -> None:
    response = owner.get(f"{TOOLS.path}?limit={limit}")
    assert problem_of(response) == (400, "invalid-parameters")
    assert [fault["pointer"] for fault in response.json()["errors"]] == ["limit"]


@pytest.mark.django_db(transaction=True)
def test_of_many_renewals_at_once_with_one_etag_one_succeeds(owner: ApiClient) -> None:
    tokens = f"{ACME}/tokens"
    path, issued = owner.made(tokens, {"name": "laptop", "scopes": ["mcp:call"]})
    etag, before = issued.headers["ETag"], len(owner.get(tokens).json()["items"])
    responses = at_once(lambda: owner.send("POST", f"{path}/renew", {}, etag=etag), RENEWALS)
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [200] + [412] * (RENEWALS - 1)
    items = {item["id"]: item["successors"] for item in owner.get(tokens).json()["items"]}
    assert len(items) == before + 1
    assert items[path.rpartition("/")[2]] == owner.get(path).json()["successors"] == 1
