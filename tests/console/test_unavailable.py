"""Tests of pages while the database is unavailable."""

import pytest
from django.db import OperationalError
from django.test import Client, RequestFactory
from django.urls import get_resolver

from mcphost.observability.availability import Source, availability

pytestmark = pytest.mark.django_db

PAGES = ["/", "/admin/", "/admin/login/", "/t/acme/done/made-up"]


@pytest.fixture
def browser() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("page", PAGES)
def test_pages_return_503_without_a_query_while_the_database_is_away(
    browser, page, django_assert_num_queries, monkeypatch
):
    monkeypatch.setattr(availability, "probe", None)
    availability.lost(Source.CONNECTION, "a test")  # no probe finds that it is available
    with django_assert_num_queries(0):  # type: ignore[operator]
        response = browser.get(page)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
    assert "The database is unreachable" in response.content.decode()
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_pages_are_served_while_only_records_cannot_be_written(browser: Client) -> None:
    availability.lost(Source.RECORDS, "a test")
    assert browser.get("/admin/login/").status_code == 200


@pytest.mark.parametrize(
    ("error", "status"), [(OperationalError("gone"), 503), (ValueError("odd"), 500)]
)
def test_a_view_that_fails_without_a_database_returns_503(monkeypatch, error, status):
    monkeypatch.setattr(availability, "probe", None)
    answer = get_resolver().resolve_error_handler(500)
    try:
        raise error
    except type(error):
        response = answer(RequestFactory().get("/admin/"))
    assert response.status_code == status
    assert availability.lacks(Source.CONNECTION) is (status == 503)
