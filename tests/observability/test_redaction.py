import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from mcphost.observability import redaction


def misfit(annotation: object, value: object) -> str:
    """Return how pydantic says that a value does not fit."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(annotation).validate_python(value)
    return str(caught.value)


API_TOKEN = "mcph_" + "a1B2c3D4e5F6" + "_" + "s" * 43 + "_" + "c0ffee"
SEALED = "mcps1.k1." + "A" * 40


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"token {API_TOKEN} was refused", API_TOKEN),
        (f"/t/demo/mcp?token={API_TOKEN}", API_TOKEN),
        (f"state={SEALED};", SEALED),
        ("Authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
        ("{'authorization': 'Basic dXNlcjpodW50ZXIy'}", "dXNlcjpodW50ZXIy"),
        ("[(b'authorization', b'Basic dXNlcjpodW50ZXIy')]", "dXNlcjpodW50ZXIy"),
        ("Proxy-Authorization: Digest username=hunter2", "hunter2"),
        ("it said Bearer abcdef123456 and left", "abcdef123456"),
        ("Cookie: mcphost_session=hunter2; other=1", "hunter2"),
        ("Set-Cookie: mcphost_session=hunter2", "hunter2"),
        ("postgres://app:hunter2@db:5432/mcphost", "hunter2"),
        ("opaque " + "Zx9-" * 25, "Zx9-Zx9-"),
        (misfit(int, "hunter2"), "hunter2"),
        (misfit(dict[str, list[int]], {"a": [1, "hunter2, input_type=str]"]}), "hunter2"),
        (repr(misfit(int, "hunter2")), "hunter2"),
    ],
)
def test_text_that_looks_like_a_secret_is_redacted(text, secret):
    clean = redaction.redact_text(text)
    assert secret not in clean
    assert redaction.REDACTED in clean


@pytest.mark.parametrize(
    "text",
    [
        "the event loop is blocked",
        "trace 0af7651916cd43dd8448eb211c80319c",
        "digest " + "ab" * 32,
        "/home/someone/projects/a-long-path/that/goes/on/and/on/until/it/is/really/quite/long/tool.py",
        "https://example.com:8443/t/demo/mcp",
        "2f1c7f8e-4a53-4a39-9d0e-0a1f3c1c9c11",
    ],
)
def test_ordinary_text_is_not_redacted(text):
    assert redaction.redact_text(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "admin_password", "token", "api-token", "accessToken", "secret",
        "client_secret", "clientSecret", "Authorization", "cookie", "api_key", "apiKey", "apikey",
        "master-key", "privateKey", "requestState", "request_state", "credentials",
    ],
)  # fmt: skip
def test_a_key_that_names_a_secret_is_recognised(name):
    assert redaction.is_secret_key(name)


@pytest.mark.parametrize(
    "name",
    [
        "token_id", "tokenId", "key", "key_id", "keyboard", "progressToken", "progress_token",
        "secret_count", "state", "tool", "event", "tokenizer", "author",
    ],
)  # fmt: skip
def test_a_key_that_names_no_secret_is_not_redacted(name):
    assert not redaction.is_secret_key(name)


class Leaky:
    def __repr__(self) -> str:
        return f"<Leaky {API_TOKEN}>"


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


def test_secrets_are_redacted_at_any_depth_in_any_container_and_object():
    value = {
        "outer": [{"password": "hunter2", "tool": "echo"}, (API_TOKEN, b"Bearer abcdef123456")],
        "object": Leaky(),
        "endless": ENDLESS,
        "plain": [1, 2.5, True, None],
        "empty": {"password": "", "token": None},
    }
    clean = redaction.redact(value)
    assert clean["outer"][0] == {"password": redaction.REDACTED, "tool": "echo"}
    assert clean["object"] == "<Leaky mcph_[redacted]>"
    assert "[too deep]" in repr(clean["endless"])
    assert (clean["plain"], clean["empty"]) == (value["plain"], value["empty"])
    for secret in ("hunter2", API_TOKEN, "abcdef123456"):
        assert secret not in repr(clean)


def test_a_log_message_stays_one_line_whatever_a_caller_sends():
    clean = redaction.processor(None, "info", {"event": "tool a\nERROR forged\x1b[2J\u2028x\r"})
    assert clean["event"] == "tool a\\nERROR forged\\x1b[2J\\u2028x\\r"


@given(st.text(alphabet=string.ascii_letters + string.digits, min_size=43, max_size=43), st.text())
def test_a_token_is_redacted_whatever_text_surrounds_it(secret, around):
    assume(secret not in around)
    token = f"mcph_a1B2c3D4e5F6_{secret}_c0ffee"
    assert secret not in redaction.redact_text(f"{around}{token}{around}")


def test_a_secret_is_redacted_before_a_long_text_is_cut():
    text = "a " * (redaction.MAX_TEXT // 2 - 10) + "Z" * 100
    line = redaction.processor(None, "info", {"event": text + " and more" * 500})
    assert "Z" not in line["event"]


@pytest.mark.parametrize("shown", [1, 5, 40, 79, 100])
def test_a_secret_at_the_cut_of_a_long_text_is_redacted(shown):
    before = "authorization: " + "x" * (redaction.MAX_READ - 15 - 1 - shown) + "\n"
    text = redaction.redact_text(before + "Zx9q" * 60 + " end" * 1_000)
    assert "Zx9q" not in text
    assert text.endswith("more characters]")
