"""The addresses and secrets that a script's code shows it will send."""

import pytest

from mcphost.kinds.kind import Sending
from mcphost.kinds.script.kind import script_kind
from mcphost.kinds.script.sendings import misplaced_secrets

SHOP = "https://shop.example.com/stock"


def sent(body: str) -> list[Sending]:
    return list(script_kind.sendings_of({"code": f"def f(item: str):\n {body}\n"}))


ADDRESSES = {
    f"http.get('{SHOP}')": SHOP,
    f"return http.post(url='{SHOP}', json={{}}).json()": SHOP,
    "http.get('HTTPS://Shop.Example.com:443/stock')": SHOP,
    "http.get(f'https://shop.example.com/{item}')": "https://shop.example.com/",
    "http.get('https://shop.example.com/' + item)": "https://shop.example.com/",
}


@pytest.mark.parametrize("body", ADDRESSES)
def test_literal_addresses_are_found(body: str):
    assert sent(body) == [Sending("code", ADDRESSES[body])]


@pytest.mark.parametrize(
    "body",
    [
        "http.get(item)", "http.get(f'https://{item}.example.com/')",
        "http.get(f'https://shop.example.com{item}')",
        "http.get('https://shop.example.com' + item)",
        "http.get(item + 'https://shop.example.com/')", "http.get('no address')", "http.get()",
        "http.fetch('https://shop.example.com/')", "other.get('https://shop.example.com/')",
        "log('https://shop.example.com/')", "secret(item)", "secret('a', 'b')", "secret(5)",
        "log.secret('a')",
    ],
)  # fmt: skip
def test_computed_addresses_are_not_guessed(body: str):
    assert sent(body) == []


@pytest.mark.parametrize(
    ("part", "place"),
    [
        ("headers={'Authorization': 'Bearer ' + secret('shop')}", "header"),
        ("params={'key': secret(name='shop')}", "query"),
        ("json={'a': [{'b': f'{secret(\"shop\")}'}]}", "body"),
        ("data={'client_secret': secret('shop')}", "body"),
    ],
)
def test_a_secret_in_a_request_is_listed_with_its_address_and_place(part: str, place: str):
    assert sent(f"http.get('{SHOP}', {part})") == [
        Sending("code", SHOP),
        Sending("code", SHOP, "shop", place),
    ]


def test_a_secret_outside_a_request_is_listed_once_by_name_only():
    body = f"a = secret('a')\n http.get('{SHOP}', headers={{'A': a}})\n http.get('{SHOP}')\n secret('a')"
    assert sent(body) == [Sending("code", SHOP), Sending("code", secret="a")]
    assert script_kind.secrets_of({"code": f"def f():\n {body}"}) == {"a"}


@pytest.mark.parametrize(
    "code",
    [
        "def secret(name): return name", "secret = str", "class secret: pass", "import secret",
        "import a as secret", "from a import secret", "def g(secret): pass",
        "for secret in []: pass", "g = lambda *secret: 0", "[1 for secret in []]",
        "(secret := 1)", "try: pass\nexcept ValueError as secret: pass",
        "match 1:\n case secret: pass", "match []:\n case [*secret]: pass",
        "match {}:\n case {**secret}: pass",
    ],
)  # fmt: skip
def test_a_script_that_redefines_the_secret_function_names_no_secrets(code: str):
    def found(code: str) -> list[Sending]:
        return list(script_kind.sendings_of({"code": f"{code}\ndef f(): http.get('{SHOP}')"}))

    assert found(f"{code}\nsecret('a')") == [Sending("code", SHOP)]
    assert found(f"{code.replace('secret', 'http')}\nsecret('a')") == [Sending("code", secret="a")]


@pytest.mark.parametrize("config", [{}, {"code": 5}, {"code": "def f(:"}, {"code": "x" * 99_999}])
def test_unparsable_code_sends_nothing(config: dict[str, object]):
    assert script_kind.sendings_of(config) == ()


MISPLACED = [
    "http.post('https://x.example/', data='é=' + secret('a'))",
    "http.post('https://x.example/', data=f'a={secret(\"a\")}&b')",
    "http.post('https://x.example/', data='a={}'.format(secret('a')))",
    "http.post('https://x.example/', data=secret('a'))",
    "http.get('https://x.example/' + secret('a'))",
    "http.get(url='https://x.example/{}'.format(secret(name='a')))",
]


@pytest.mark.parametrize("body", MISPLACED)
def test_a_secret_where_it_cannot_be_sent_is_a_problem_with_its_position(body: str):
    (problem,) = misplaced_secrets(f"def f(item: str):\n {body}\n")
    assert problem.line == 2 and "A secret is" in str(problem)
    if "f'" not in body:
        assert problem.column == f" {body}".index("secret(") + 1


@pytest.mark.parametrize(
    "body",
    [
        "http.post('https://x.example/', data={'a': 'b' + secret('a')})",
        "http.get('https://x.example/?a=' + secret('a'))",
        "http.get(f'https://x.example/?a={secret(\"a\")}')",
        "http.get(item + secret('a'))",
        "http.post('https://x.example/', json='a' + secret('a'), headers={'B': secret('a')})",
        "http.post('https://x.example/', data=item)",
        "secret = str\n http.post('https://x.example/', data=secret('a'))",
    ],
)
def test_a_secret_in_a_request_is_not_a_problem(body: str):
    assert list(misplaced_secrets(f"def f(item: str):\n {body}\n")) == []
