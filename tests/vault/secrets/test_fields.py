"""Rules for a secret's name, value, hosts and places."""

from collections.abc import Sequence

import pytest

from mcphost.tenants.errors import InvalidError
from mcphost.vault.secrets.fields import (
    MAX_HOSTS,
    NAME_RULE,
    VALUE_LIMIT,
    VALUE_RULE,
    check_new,
    check_rules,
    check_value,
)
from tests.vault.secrets.tenant_secret import NAME, VALUE

HOSTS = ["api.example.com"]


def problems(
    name: str = NAME,
    value: str = VALUE,
    hosts: Sequence[str] = HOSTS,
    places: Sequence[str] = ("body",),
) -> dict[str, list[str]]:
    with pytest.raises(InvalidError) as refused:
        check_new(name, value, hosts, places)
    return refused.value.problems


@pytest.mark.parametrize(
    "name", ["", "Key", "1key", "_key", "a-key", "a key", "a.b", "k" * 65, "key\n", "ключ", "k\0"]
)
def test_a_secret_name_is_an_identifier(name: str) -> None:
    assert problems(name=name) == {"name": [NAME_RULE]}


@pytest.mark.parametrize(
    "value",
    [
        "",
        "short-1",
        "x" * (VALUE_LIMIT + 1),
        "a-value\r\nX-Admin: 1",
        "a-value\0more",
        " a-value-",
        "a-value- ",
        "pässword-pässword",
        "a-value\u2028more",
        "a-value\x7fmore",
    ],
)
def test_a_value_that_could_forge_a_header_or_not_be_masked_is_refused_without_quoting_it(
    value: str,
) -> None:
    with pytest.raises(InvalidError) as refused:
        check_value(value)
    assert refused.value.problems == problems(value=value) == {"value": [VALUE_RULE]}
    assert len(value) < 7 or value not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM", "api.example.com"),
        ("api.example.com:443", "api.example.com"),
        ("api.example.com:8443", "api.example.com:8443"),
        ("localhost:80", "localhost:80"),
        ("10.0.0.7", "10.0.0.7"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1and1.example", "1and1.example"),
        ("a" * 63 + ".example", "a" * 63 + ".example"),
    ],
)
def test_a_host_is_an_exact_name_with_an_optional_port(written: str, read: str) -> None:
    assert check_rules([written], ["body"]).hosts == (read,)


NO_HOSTS = """
    https://api.example.com api.example.com/path user@api.example.com *.example.com *
    api.example.com. .example.com api..example.com -a.example.com a-.example.com
    api_x.example.com bücher.example api.example.com:0 api.example.com:070
    api.example.com:65536 api.example.com: api.example.com:443:443
    127.1 0x7f.0x1 127.0.0.0x1 127.0.0.01 256.0.0.1 2130706433 [::1] ::1
"""


@pytest.mark.parametrize(
    "host",
    [
        *NO_HOSTS.split(),
        "a" * 64 + ".example",
        ".".join(["abcdefg"] * 32),
        "",
        "api.example.com\n",
        "api.example.com\0",
        "api．example．com",  # noqa: RUF001 - full-width dots
    ],
)
def test_a_malformed_host_is_refused(host: str) -> None:
    assert list(problems(hosts=[host])) == ["hosts"]


def test_hosts_and_places_are_required_and_stored_without_duplicates_in_order() -> None:
    assert list(problems(hosts=[])) == ["hosts"]
    assert list(problems(places=[])) == ["places"]
    assert list(problems(places=["header", "cookie"])) == ["places"]
    many = [f"h{n}.example" for n in range(MAX_HOSTS)]
    assert len(check_rules(many, ["body"]).hosts) == MAX_HOSTS
    assert list(problems(hosts=[*many, "one-more.example"])) == ["hosts"]
    rules = check_rules(["b.example", "A.example", "a.example:443"], ["body", "header", "body"])
    assert (rules.hosts, rules.places) == (("a.example", "b.example"), ("header", "body"))
