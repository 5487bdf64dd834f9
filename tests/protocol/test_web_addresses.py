"""Tests of web addresses in URL-mode questions and in texts."""

import pytest

from mcphost.protocol.web_addresses import mentions_one, url_problem


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:8443/connect?link=abc#top",
        "HTTPS://Example.com/",
        "http://localhost:8000/t/acme/done/x",
        "http://[::1]:3000/",
        "https://example.com/?state=1&id=5&keyword=a&tokens=2&encode=x&postcode=1&emails=0",
        "https://example.com/token/password?next=/code#section-key",
    ],
)
def test_an_encrypted_address_may_be_opened_and_one_of_the_own_machine(url):
    assert url_problem(url) is None


@pytest.mark.requirement("elicitation.url")
@pytest.mark.parametrize(
    ("url", "why"),
    [
        (None, "the address must be a text"),
        ("", "does not begin with a scheme"),
        ("example.com/a", "does not begin with a scheme"),
        ("https:example.com", "must name a host"),
        ("https://exa mple.com", "must be percent-encoded"),
        ("https://example.com:99999/", "Port out of range"),
        ("https://ada@example.com/", "a user name or password"),
        ("https://ada:lovelace@example.com/", "a user name or password"),
        ("ftp://example.com/", "must begin with https://"),
        ("http://example.com/", "http:// is for localhost only"),
        ("http://localhost.example.com/", "http:// is for localhost only"),
        ("https://example.com/" + "a" * 3000, "more than 2048 characters"),
    ],
)
def test_another_address_is_refused_with_the_reason(url, why):
    assert why in (url_problem(url) or "")


@pytest.mark.requirement("elicitation.url")
@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/?token=1",
        "https://example.com/?a=b;password=1",
        "https://example.com/?email=ada%40example.com",
        "https://example.com/?%63ode=1",
        "https://example.com/#access_token=1",
        "https://example.com/#/page?tab=2&key=1",
    ],
)
def test_an_address_holds_no_credential_and_identifies_no_person(url):
    assert "must not contain the parameter" in (url_problem(url) or "")


@pytest.mark.parametrize("text", ["https://a", "HTTP://a.b", "(www.example.com)", "Www.x.org"])
def test_what_clients_would_make_a_link_of_is_found(text):
    assert mentions_one(text)


@pytest.mark.parametrize("text", ["", "the www", "awww.nice", "http and https", "example.com"])
def test_other_text_is_left_alone(text):
    assert not mentions_one(text)
