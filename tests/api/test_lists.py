"""Lists: pages by keyset, filters by name, and cursors that belong to one list."""

from typing import Any

import pytest

from tests.api.client import ApiClient
from tests.api.samples import SAMPLES

pytestmark = pytest.mark.django_db

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
NAMES = [f"tool-{letter}" for letter in "abcde"]


@pytest.fixture
def tools(owner: ApiClient) -> list[str]:
    return [
        owner.made(TOOLS.path, {**TOOLS.creation, "name": name})[0] for name in reversed(NAMES)
    ][::-1]


def names(page: Any) -> list[str]:
    assert page.status_code == 200, page.content
    return [item["name"] for item in page.json()["items"]]


def walk(owner: ApiClient, path: str) -> list[list[str]]:
    """Return the names of each page."""
    pages, joiner = [], "&" if "?" in path else "?"
    page = owner.get(path)
    while True:
        pages.append(names(page))
        cursor = page.json()["next"]
        if cursor is None:
            return pages
        page = owner.get(f"{path}{joiner}cursor={cursor}")


def test_pages_follow_one_another_without_gaps(owner: ApiClient, tools: list[str]) -> None:
    assert walk(owner, f"{TOOLS.path}?limit=2") == [NAMES[:2], NAMES[2:4], NAMES[4:]]
    assert walk(owner, f"{TOOLS.path}?limit=5") == [NAMES]
    assert walk(owner, TOOLS.path) == [NAMES]


def test_a_page_begins_after_the_last_row_though_rows_are_added_and_deleted(
    owner: ApiClient, tools: list[str]
) -> None:
    page = owner.get(f"{TOOLS.path}?limit=2")
    owner.send("DELETE", tools[1], etag="*")
    owner.made(TOOLS.path, {**TOOLS.creation, "name": "tool-a1"})
    page = owner.get(f"{TOOLS.path}?limit=2&cursor={page.json()['next']}")
    assert names(page) == NAMES[2:4]


def test_a_list_is_filtered_by_name_state_and_text(owner: ApiClient, tools: list[str]) -> None:
    owner.send("POST", f"{tools[0]}/publish", {}, etag="*")
    owner.send("PATCH", tools[1], {"title": "Needle"}, etag="*")
    assert names(owner.get(f"{TOOLS.path}?name=tool-c")) == ["tool-c"]
    assert names(owner.get(f"{TOOLS.path}?name=tool")) == []
    assert names(owner.get(f"{TOOLS.path}?state=published")) == ["tool-a"]
    assert walk(owner, f"{TOOLS.path}?state=draft&limit=3") == [NAMES[1:4], NAMES[4:]]
    assert names(owner.get(f"{TOOLS.path}?q=needle")) == ["tool-b"]


def test_an_item_of_a_list_is_the_object_itself(owner: ApiClient, tools: list[str]) -> None:
    items = owner.get(TOOLS.path).json()["items"]
    assert items == [owner.get(path).json() for path in tools]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("colour=red", "colour"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=many", "limit"),
        ("state=deleted", "state"),
        ("name=a&name=b", "name"),
        ("name=a%00", "name"),
        ("q=" + "x" * 65, "q"),
        ("cursor=nonsense", "cursor"),
        ("format=json", "format"),
    ],
)
def test_wrong_and_unknown_parameters_are_refused_by_name(
    owner: ApiClient, query: str, parameter: str
) -> None:
    response = owner.get(f"{TOOLS.path}?{query}")
    assert (response.status_code, response.json()["type"]) == (
        400,
        "urn:mcphost:problem:invalid-parameters",
    )
    assert {fault["pointer"] for fault in response.json()["errors"]} == {parameter}


def test_operations_without_parameters_refuse_all(owner: ApiClient, tools: list[str]) -> None:
    for method, path in (("GET", tools[0]), ("DELETE", tools[0]), ("POST", TOOLS.path)):
        response = owner.send(method, f"{path}?name=tool-a", {}, etag="*")
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (400, "name")


def test_the_cursor_of_another_list_is_refused(owner: ApiClient, tools: list[str]) -> None:
    cursor = owner.get(f"{TOOLS.path}?limit=2").json()["next"]
    prompts = TOOLS.path.replace("tools", "prompts")
    others = (
        f"{prompts}?cursor={cursor}",
        f"{TOOLS.path}?state=draft&cursor={cursor}",
        f"{TOOLS.path}?cursor={cursor[:-1]}",
        f"/api/v1/tenants?cursor={cursor}",
    )
    for path in others:
        response = owner.get(path)
        assert (response.status_code, response.json()["errors"][0]["pointer"]) == (400, "cursor")
    assert owner.get(f"{TOOLS.path}?limit=1&cursor={cursor}").status_code == 200


def test_versions_are_listed_from_the_newest_one(owner: ApiClient, tools: list[str]) -> None:
    for title in ("one", "two", "three"):
        owner.send("PATCH", tools[0], {"title": title}, etag="*")
        response = owner.send("POST", f"{tools[0]}/publish", {"note": title}, etag="*")
        assert response.status_code == 200, response.content
    page = owner.get(f"{tools[0]}/versions?limit=2").json()
    assert [version["note"] for version in page["items"]] == ["three", "two"]
    rest = owner.get(f"{tools[0]}/versions?limit=2&cursor={page['next']}").json()
    assert ([version["number"] for version in rest["items"]], rest["next"]) == ([1], None)
    oldest = rest["items"][0]
    path = f"{tools[0]}/versions/{oldest['id']}"
    assert owner.get(path).json() == oldest
    assert (oldest["title"], oldest["live"], oldest["kind"]) == ("one", False, "http")
    assert oldest["code"]["inputSchema"]["type"] == "object"
    body = {"version_id": oldest["id"], "note": "It was better."}
    response = owner.send("POST", f"{tools[0]}/roll-back", body, etag=owner.etag(tools[0]))
    assert response.status_code == 200, response.content
    assert (response.json()["version"], response.json()["edited"]) == (oldest["label"], True)
    assert owner.get(path).json()["live"] is True
    response = owner.send("POST", f"{tools[0]}/roll-back", body, etag="*")
    assert (response.status_code, response.json()["errors"][0]["code"]) == (409, "unchanged")
