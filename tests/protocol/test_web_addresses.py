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
        (
            "https://example.com/?client_id=a&redirect_uri=https%3A%2F%2Fx.example%2Fcb&nonce=1"
            "&response_type=code&code_challenge=abc&code_challenge_method=S256&scope=openid+email"
        ),
        "https://example.com/?name=widget&file_name=Annual+Report&q=New+York&action=reset_password",
        "https://example.com/?country_code=de&user_code=ABCD-EFGH&page_token=2&sort_key=a",
        "https://example.com/?ticket_id=5&auth_type=x&design=1&max_tokens=5&time=10:30&q=c%2B%2B",
        "https://example.com/@handle/orders/0123456789#reset-password",
        "https://example.com/?_=2&--=3",
        "https://example.com/secrets/6f9619ff-8b86-d011-b42d-00c04fc964ff",
        "https://bank.example/pay?hook=https%3A%2F%2Fh.example%2Ft%2Facme%2Fcallback%2FAAAA.djE6abc123",
    ],
)
def test_https_addresses_and_loopback_addresses_are_accepted(url):
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
def test_other_web_addresses_are_refused_with_the_reason(url, why):
    assert why in (url_problem(url) or "")


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.requirement("elicitation.url")
@pytest.mark.parametrize(
    "rest",
    words("""
        ?token=1 ?a=b;password=1 ?email=ada%40example.com ?%63ode=1 #access_token=1
        #/page?tab=2&key=1 ?sig= ?sig=abc ?X-Amz-Signature=1 ?X-Goog-Credential=1 ?AWSAccessKeyId=1
        ?ticket=ST-1 ?auth=x ?apiToken=x ?my_token=x ?mytoken=x ?Access-Token=x ?jsessionid=1
        ?PHPSESSID=1 ?otp_code=1 ?hmac=1 ?passwort=x ?wachtwoord=x ?clave=x ?%C5%9Fifre=x
        ?SAMLResponse=1 ?id_token_hint=1 ?token%5B%5D=1 ?data%5Btoken%5D=1 /a;jsessionid=1/b
        ?userEmail=1 ?user=1 ?login_hint=x ?first_name=A ?phone=1 ?name=First+Last ?user_id=4
        ?redirect=https%3A%2F%2Fx%2F%3Ftoken%3Dabc ?next=%2Fa%3Ftoken%3D1
        ?next=%252Fa%253Ftoken%253D1 /to/https%3A%2F%2Fx%2F%3Ftoken%3Dabc
    """),
)
def test_a_query_parameter_must_not_be_a_credential_or_identify_a_person(rest):
    assert "must not contain the parameter" in (url_problem("https://example.com/" + rest) or "")


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"


@pytest.mark.requirement("elicitation.url")
@pytest.mark.parametrize(
    ("rest", "what"),
    [
        (JWT, "a signed token"),
        (f"?a={JWT}", "a signed token"),
        (f"?{JWT}", "a signed token"),
        (f"#{JWT}", "a signed token"),
        ("?k=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "a token of a service"),
        ("?h=Bearer+abcdefghijkl", "a header with a credential"),
        ("?q=a%40b.example", "an e-mail address"),
        ("?q=a%2540b.example", "an e-mail address"),
        ("users/someone@example.com", "an e-mail address"),
        ("users/someone%40example.com", "an e-mail address"),
        ("#someone@example.com", "an e-mail address"),
        ("?p=%2B49%20151%2012345678", "a telephone number"),
        ("?u=https://ada:pw@x/", "a user name or password"),
        ("login/token/8f14e45fceea167a5a36dedd4bea2543", "a token in its path"),
        ("?u=http://%5B", None),
    ],
)
def test_a_query_value_must_not_be_a_credential_or_identify_a_person(rest, what):
    problem = url_problem("https://example.com/" + rest)
    assert problem == (what and f"the address must not contain {what}: users would share it")


@pytest.mark.parametrize(
    "text",
    [
        *("https://a", "HTTP://a.b", "(www.example.com)", "Www.x.org", "see example.com/login"),
        *(
            "(example.com/login)",
            "b\u00fccher.example:8080/x",
            "[here](example.com)",
            "[1]: example.com",
        ),
        *(
            "javascript:alert(1)",
            "JavaScript:x",
            "mailto:a@b.example",
            "tel:+491511234",
            "ftp://host/f",
        ),
        *("slack://open", "data:text/html,hi", "//example.com", "<a href='//example.com'>"),
        *("<img src=x>", "https&#58;//x.example", "ht\u200btps://a", "https\uff1a//a"),
        *("localhost:8000/x", "192.168.0.1/login", "https:\\/\\/x"),
    ],
)
def test_text_that_clients_would_turn_into_a_link_is_detected(text):
    assert mentions_one(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "the www", "awww.nice", "http and https", "example.com", "ada@example.com"),
        *("10.0.0.0/8", "and/or", "TCP/IP v1.2/3", "src/main.py", "etc/conf.d/site.conf", "a.b/c"),
        *("Tel: 1234", "Data: 5", "data:5", "file: a", "key:value", "12:30", "// comment"),
        *(
            "Size [optional] (at most 5)",
            "[optional]: your name",
            "x < y and src = z",
            "report.pdf",
            "e.g./i.e.",
        ),
    ],
)
def test_text_without_a_web_address_is_accepted(text):
    assert not mentions_one(text)


@pytest.mark.parametrize("part", ["a", "a.", "<a ", "[a", "] (", "[a\n", "1.", "a:/", "&#"])
def test_searching_a_long_text_for_web_addresses_takes_linear_time(part):
    assert not mentions_one(part * 50_000)
