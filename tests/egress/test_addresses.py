"""Tests of the addresses and hosts that may be reached."""

from ipaddress import ip_address

import pytest

from mcphost.egress.addresses import MAX_URL, AllowedHost, Target, is_public, may_connect
from mcphost.egress.errors import EgressRequestError

FORBIDDEN = """
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1
    127.1.2.3 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255
    192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1
    203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::2 ::7f00:1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::ffff:0:8.8.8.8 ::ffff:a9fe:a9fe
    64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::8.8.8.8
    64:ff9b:1:fffe::8.8.8.8 64:ff9b::1:808:808 64:ff9a:ffff:ffff:ffff:ffff:808:808 100::1 100:0:0:1::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
    2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808::1 3fff::1 4000::1
    5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
    2606:4700:4700::1111%eth0 2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:10.0.0.1
""".split()  # noqa: SIM905
PUBLIC = """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
    168.63.129.15 168.63.129.17 169.253.255.255 172.15.255.255 172.32.0.0 192.167.255.255
    198.17.255.255 223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888 2a00::1
    64:ff9b::8.8.8.8
""".split()  # noqa: SIM905


# Each has a public address on both sides, or the end of all addresses. NAT64 is inside of one.
FORBIDDEN_RANGES = """
    0.0.0.0-0.255.255.255 10.0.0.0-10.255.255.255 100.64.0.0-100.127.255.255
    127.0.0.0-127.255.255.255 168.63.129.16-168.63.129.16 169.254.0.0-169.254.255.255
    172.16.0.0-172.31.255.255 192.0.0.0-192.0.0.255 192.0.2.0-192.0.2.255
    192.88.99.0-192.88.99.255 192.168.0.0-192.168.255.255 198.18.0.0-198.19.255.255
    198.51.100.0-198.51.100.255 203.0.113.0-203.0.113.255 224.0.0.0-255.255.255.255
    ::-1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    2001::-2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
    2001:db8::-2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
    2002::-2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
    3fff::-3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
    4000::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
""".split()  # noqa: SIM905


@pytest.mark.parametrize("addresses", FORBIDDEN_RANGES)
def test_a_range_that_is_not_public_is_refused_from_its_first_address_to_its_last(addresses: str):
    first, last = map(ip_address, addresses.split("-"))
    before = [] if int(first) == 0 else [first - 1]
    after = [] if int(last) == 2**last.max_prefixlen - 1 else [last + 1]
    assert [is_public(address) for address in (first, last)] == [False, False]
    assert all(map(is_public, before + after))


@pytest.mark.parametrize("address", FORBIDDEN)
def test_addresses_that_are_not_public_are_refused(address: str):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_accepted(address: str):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    ("addresses", "port", "expected"),
    [
        (["8.8.8.8"], 443, True),
        (["8.8.8.8", "2606:4700::1"], 443, True),
        (["8.8.8.8", "10.0.0.1"], 443, False),
        (["127.0.0.1", "::1"], 9000, True),
        (["127.0.0.1"], 9001, False),
        (["::ffff:127.0.0.1"], 9000, False),
        (["64:ff9b::127.0.0.1"], 9000, False),
        (["::1%lo"], 9000, False),
        (["127.0.0.1", "10.0.0.1"], 9000, False),
        (["10.0.0.1"], 9000, False),
        (["not an address"], 443, False),
        ([], 443, False),
    ],
)
def test_a_connection_needs_public_addresses_only_or_an_open_loopback_port(
    addresses, port, expected
):
    assert may_connect(addresses, port, frozenset({9000})) is expected


LONGEST = "https://" + "a." * 126 + "a/"
"""Its host has 253 characters."""


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.COM./a?b#c", "https://example.com/a?b"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("https://bücher.example/ä?ö=ü", "https://xn--bcher-kva.example/%C3%A4?%C3%B6=%C3%BC"),
        ("https://my_service.example.com/", "https://my_service.example.com/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://①.1.1.1/", "https://1.1.1.1/"),
        ("https://[2606:4700:0:0::1]:8443/", "https://[2606:4700::1]:8443/"),
        ("https://[::FFFF:127.0.0.1]/", "https://[::ffff:7f00:1]/"),
        (LONGEST, LONGEST),
    ],
)
def test_a_url_is_normalised(url: str, normal: str):
    assert Target.parse(url).url == normal


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com/", "/path", "https:///path", "https://", "https://.",
        "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "unix:///run/x",
        "javascript:alert(1)", "data:text/plain,x", "http+unix://x/", "https:example.com", LONGEST.replace("a/", "aa/"),
        # Userinfo, and what other readers take for it.
        "https://user@example.com/", "https://user:password@example.com/", "https://@example.com/",
        "https://example.com@127.0.0.1/", "https://example.com\\@127.0.0.1/",
        "https://example.com%40127.0.0.1/", "https://127.0.0.1\\.example.com/",
        # Spaces and controls.
        "https://exa mple.com/", "https://example.com/\n", "https://exam\tple.com/",
        "https://example.com/\r\nX: y", "https://example.com/\x00", " https://example.com/",
        "https://example.com/\x7f",
        # Ports.
        "https://example.com:0/", "https://example.com:65536/", "https://example.com:-1/",
        "https://example.com:x/", "https://example.com:8\uff10/", "https://example.com:443:80/",
        # Numeric forms of 127.0.0.1 and others.
        "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/",
        "http://127.0.1/", "http://0177.0.0.1/", "http://0x7f.0.0.1/", "http://127.0.0.0x1/",
        "http://0/", "http://0x/", "http://1.2.3.4.5/", "http://256.1.1.1/", "http://1.1.1.1.1/",
        "http://example.0x7f/", "http://①②⑦.1/", "http://127.0.0.01/",
        # IPv6.
        "https://[::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[::1/", "https://::1/",
        "https://[127.0.0.1]/", "https://[example.com]/", "https://[v1.x]/", "https://[::1]x/",
        # Names.
        "https://%6c%6fcalhost/", "https://a..b/", "https://-a.example/", "https://a-.example/",
        "https://example.com../", "https://" + "a" * 64 + ".example/", "https://exa*mple.com/",
        "https://" + "a." * 130 + "example/", "https://ex\u200bample。。com/", "https://\u2488com/",
        "https://example.com\uff0fevil.com/", "https://example.com/\ud800",
        "https://example.com/" + "a" * MAX_URL,
    ],
)  # fmt: skip
def test_a_malformed_url_is_refused(url: str):
    with pytest.raises(EgressRequestError):
        Target.parse(url)


@pytest.mark.parametrize(
    ("entry", "url", "expected"),
    [
        ("example.com", "https://example.com/x", True),
        ("bücher.example", "https://xn--bcher-kva.example/", True),
        ("example.com", "http://example.com/", False),
        ("example.com", "https://example.com:8443/", False),
        ("example.com", "https://api.example.com/", False),
        ("example.com", "https://example.com.evil.example/", False),
        ("example.com:8443", "https://example.com:8443/", True),
        ("http://example.com", "http://example.com/", True),
        ("http://example.com", "https://example.com/", False),
        ("*.example.com", "https://a.b.example.com/", True),
        ("*.example.com", "https://example.com/", False),
        ("*.example.com:8443", "https://a.example.com:8443/", True),
        ("*", "https://anything.example/", True),
        ("*", "http://anything.example/", False),
        ("*:8443", "https://anything.example:8443/", True),
        ("[2606:4700::1]", "https://[2606:4700:0::1]/", True),
        ("http://localhost:9000", "http://localhost:9000/", True),
    ],
)
def test_an_allowed_host_entry_allows_one_scheme_host_and_port(
    entry: str, url: str, expected: bool
):
    assert AllowedHost.parse(entry).matches(Target.parse(url)) is expected


@pytest.mark.parametrize(
    "entry",
    ["", "*.", "*.com", "*.*.example.com", "a.*.example.com", "*.8.8.8.8", "example.com/",
     "example.com/path", "example.com?q", "ftp://example.com", "user@example.com", "**", "*x",
     "0x7f.1", "http://"],
)  # fmt: skip
def test_a_malformed_allowed_host_entry_is_refused(entry: str):
    with pytest.raises(ValueError, match="is not an allowed host"):
        AllowedHost.parse(entry)
