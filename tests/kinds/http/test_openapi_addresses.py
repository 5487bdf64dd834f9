"""An imported tool sends requests only to the server named by its document or by the operator."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from mcphost.kinds.http.openapi import Operation, operations
from mcphost.kinds.http.openapi_servers import ServerAddress

API = "https://api.example.com"
HOST = {"default": "api.example.com"}
NOWHERE = ServerAddress()
BASE = ServerAddress(API)
FETCHED = ServerAddress("", f"{API}/docs/openapi.json")


def imported(path: str, servers: Any, place: ServerAddress = NOWHERE) -> Operation:
    parameter = {"name": "a", "in": "path", "required": True, "schema": {"type": "string"}}
    (operation,) = operations(
        {
            "openapi": "3.1.0",
            "servers": servers,
            "paths": {path: {"get": {"parameters": [parameter] if "{a}" in path else []}}},
        },
        place,
    )
    return operation


def server(url: str, **variables: Any) -> list[dict[str, Any]]:
    return [{"url": url, "variables": variables}]


PATHS = [
    ".evil.example/b", "@evil.example/b", ":8443/b",
    "{a}/b", "\\b", "\t/b", "", "?b",
    "https://evil.example/b",
]  # fmt: skip


@pytest.mark.parametrize("place", [NOWHERE, BASE, FETCHED])
@pytest.mark.parametrize("path", PATHS)
def test_a_path_without_a_leading_slash_is_refused(path: str, place: ServerAddress) -> None:
    servers = server(API if place is NOWHERE else "/")
    operation = imported(path, servers, place)
    assert operation.config is None
    assert operation.problem == "Its path does not begin with /."


@pytest.mark.parametrize(
    "path", ["//evil.example/b", "///b", "/@evil.example", "/:8443", "/.", "/"]
)
@pytest.mark.parametrize("servers", [server(API), server(f"{API}/"), server(f"{API}///")])
def test_a_path_with_a_leading_slash_stays_on_its_host(path: str, servers: Any) -> None:
    operation = imported(path, servers)
    assert operation.config is not None, operation.problem
    assert urlsplit(operation.config["request"]["url"]).netloc == "api.example.com"


@pytest.mark.parametrize(
    ("path", "servers", "place"),
    [
        ("//evil.example/b", server("https://"), NOWHERE),
        ("/\\evil.example", server(API), NOWHERE),
        ("/b", server("{a}evil.example", a={"default": "//"}), BASE),
        ("/b", server("/\\evil.example"), BASE),
        ("/b", server("\t//evil.example"), BASE),
        ("/b", server("https://{a}.example.com", a={"default": "evil.example/"}), NOWHERE),
        ("/b", server("https://{a}.example.com", a={"default": "evil.example\\"}), NOWHERE),
        ("/b", server("https://{h}{a}", h=HOST, a={"default": "@evil.example"}), NOWHERE),
        ("/b", server("https://user@api.example.com"), NOWHERE),
        ("/b", server("https://api.example.com?"), NOWHERE),
        ("/b", server("https://api.example.com\\@evil.example"), NOWHERE),
        ("/b", server("https://{arguments.a}/"), NOWHERE),
        ("/b", server("ftp://api.example.com"), NOWHERE),
        ("/b", server("/v1"), ServerAddress(f"{API}?x")),
        ("/b", server("/v1"), ServerAddress("https://user@api.example.com")),
    ],
)
def test_an_address_that_could_leave_its_server_is_refused(
    path: str, servers: Any, place: ServerAddress
):
    operation = imported(path, servers, place)
    url = operation.config["request"]["url"] if operation.config else ""
    # What the server's own part of a base address drops cannot move anything.
    assert url in ("", f"{API}/v1/b"), url


@pytest.mark.parametrize(
    ("servers", "place", "url"),
    [
        (server("https://{a}/v1", a=HOST), NOWHERE, f"{API}/v1/b"),
        (server("https://{a}.example.com", a={"default": "api"}), NOWHERE, f"{API}/b"),
        (server("{a}://{h}", a={"default": "https"}, h=HOST), NOWHERE, f"{API}/b"),
        (server("https://{h}:{p}/", h=HOST, p={"default": "8443"}), NOWHERE, f"{API}:8443/b"),
        (server(f"{API}/{{v}}", v={"default": "a/b@1.0"}), NOWHERE, f"{API}/a/b@1.0/b"),
        (server(f"{API}/{{v}}", v={"default": "/v1"}), NOWHERE, f"{API}/v1/b"),
        (server(f"{API}/{{v}}/x", v={"default": "/v1/"}), NOWHERE, f"{API}/v1/x/b"),
        (server(f"{API}/{{v}}/x", v={"default": ""}), NOWHERE, f"{API}/x/b"),
        (server("{v}", v={"default": "//api.example.com//v1"}), NOWHERE, f"{API}/v1/b"),
        (server("/{v}", v={"default": "/v1"}), BASE, f"{API}/v1/b"),
        (server("v1"), FETCHED, f"{API}/docs/v1/b"),
        (server("/v1"), BASE, f"{API}/v1/b"),
        (server("https://evil.example"), BASE, f"{API}/b"),
        (server("//evil.example"), BASE, f"{API}/b"),
        (server("//api.example.com/v1"), NOWHERE, f"{API}/v1/b"),
        (server("//api.example.com/v1"), ServerAddress("", "https://docs.example"), f"{API}/v1/b"),
    ],
)
def test_relative_servers_and_servers_with_variables_are_imported(servers, place, url):
    operation = imported("/b", servers, place)
    assert operation.config is not None, operation.problem
    assert operation.config["request"]["url"] == url


def test_what_is_wrong_with_a_server_is_said() -> None:
    for url in ("/\\evil.example", "\t//evil.example"):
        problem = imported("/b", server(url), BASE).problem
        assert problem == "Its server is neither a whole address nor a path."
