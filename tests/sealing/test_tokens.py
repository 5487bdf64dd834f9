"""Tests of sealed tokens: own tokens open, all others are refused without a reason."""

import base64
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from mcphost.sealing.tokens import (
    LIMITS,
    PREFIX,
    STATE_STEP,
    TEXT,
    Binding,
    Key,
    Purpose,
    Reason,
    Ring,
    SealError,
    key_id,
    seal,
    unseal,
)

ACME = UUID("0f6d2a54-7c0d-4a6b-9d53-3d9c8f6f1a01")
SALT = bytes(range(32))
KEY = Key("k1", bytes(range(100, 132)))
OTHER_KEY = Key("k2", bytes(range(50, 82)))
RING = Ring(KEY, {KEY.id: KEY, OTHER_KEY.id: OTHER_KEY})
RANDOM = bytes(range(200, 224))
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

purposes = st.sampled_from(Purpose)
randoms = st.binary(min_size=24, max_size=24)
payloads = st.binary(max_size=120)  # fits every purpose


def bound(purpose: Purpose = Purpose.CURSOR, tenant: UUID = ACME, salt: bytes = SALT) -> Binding:
    return Binding(purpose, tenant, salt)


def refusal(token: str, binding: Binding, ring: Ring = RING, limit: int | None = None) -> Reason:
    with pytest.raises(SealError) as caught:
        unseal(token, binding, ring, limit)
    assert str(caught.value) == TEXT
    return caught.value.reason


def body_of(token: str) -> bytes:
    text = token.rpartition(".")[2]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sealed_by_hand(plaintext: bytes, purpose: Purpose) -> str:
    """Seal by an implementation that was written from the description of the format, not from the
    code."""
    info = purpose.value.encode("ascii") + ACME.bytes + RANDOM
    one_use = HKDF(algorithm=SHA256(), length=32, salt=SALT, info=info).derive(KEY.secret)
    known = b"mcps1.k1." + ACME.bytes + purpose.value.encode("ascii")
    sealed = AESGCM(one_use).encrypt(b"\0" * 12, plaintext, known)
    return "mcps1.k1." + base64.urlsafe_b64encode(RANDOM + sealed).decode().rstrip("=")


@given(payload=payloads, purpose=purposes, tenant=st.uuids(), random24=randoms)
def test_a_sealed_payload_opens_unchanged(
    payload: bytes, purpose: Purpose, tenant: UUID, random24: bytes
) -> None:
    binding = bound(purpose, tenant)
    token = seal(payload, binding, KEY, random24)
    assert unseal(token, binding, RING) == payload
    assert len(token) <= LIMITS[purpose]
    assert set(token.removeprefix(f"{PREFIX}{KEY.id}.")) <= set(ALPHABET)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_token_has_the_documented_format(purpose: Purpose) -> None:
    padded = b"hello\x80" + bytes(506) if purpose is Purpose.STATE else b"hello"
    assert seal(b"hello", bound(purpose), KEY, RANDOM) == sealed_by_hand(padded, purpose)


def test_a_token_of_an_earlier_release_still_opens() -> None:
    token = "mcps1.k1.yMnKy8zNzs_Q0dLT1NXW19jZ2tvc3d7f0sZexJwMmg_8BC6ximvxnku9FnYO"
    assert seal(b"hello", bound(), KEY, RANDOM) == token
    assert unseal(token, bound(), RING) == b"hello"


@given(
    payload=payloads, contexts=st.lists(st.binary(min_size=1, max_size=40), min_size=2, unique=True)
)
def test_a_token_opens_only_in_its_own_context(payload: bytes, contexts: list[bytes]) -> None:
    binding, other, *_ = (replace(bound(Purpose.ROW), context=context) for context in contexts)
    token = seal(payload, binding, KEY, RANDOM)
    assert unseal(token, binding, RING) == payload
    assert refusal(token, other) is Reason.NOT_AUTHENTIC


def test_a_row_of_an_earlier_release_opens_in_the_context_at_the_start_of_its_payload() -> None:
    old = seal(b"place" + b"hello", bound(Purpose.ROW), KEY, RANDOM)
    assert unseal(old, replace(bound(Purpose.ROW), context=b"place"), RING) == b"hello"
    elsewhere = replace(bound(Purpose.ROW), context=b"plane")
    assert refusal(old, elsewhere) is Reason.NOT_AUTHENTIC


@pytest.mark.parametrize("purpose", Purpose)
def test_a_token_with_any_single_bit_flipped_is_refused(purpose: Purpose) -> None:
    raw = seal(b"attack at dawn", bound(purpose), KEY, RANDOM).encode()
    for bit in range(len(raw) * 8):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        refusal(changed.decode("latin-1"), bound(purpose))


@given(payload=payloads, data=st.data())
def test_a_body_with_any_single_bit_flipped_is_not_authentic(
    payload: bytes, data: st.DataObject
) -> None:
    raw = bytearray(body_of(seal(payload, bound(), KEY, RANDOM)))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    token = f"{PREFIX}{KEY.id}." + base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert refusal(token, bound()) is Reason.NOT_AUTHENTIC


@pytest.mark.parametrize("purpose", Purpose)
def test_a_truncated_token_is_refused(purpose: Purpose) -> None:
    token = seal(b"attack at dawn", bound(purpose), KEY, RANDOM)
    for length in range(len(token)):
        refusal(token[:length], bound(purpose))


@given(payload=payloads, purpose=purposes)
def test_a_token_names_the_key_that_sealed_it(payload: bytes, purpose: Purpose) -> None:
    assert key_id(seal(payload, bound(purpose), OTHER_KEY, RANDOM)) == OTHER_KEY.id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "mcps1.k1",
        "mcps1..AAAA",
        "mcps2.k1.AAAA",
        "mcps1.K1.A",
        "mcps1.k1\n.A",
        "mcps1.12345678901234567.A",
    ],
)
def test_a_malformed_token_has_no_key_id(text: str) -> None:
    with pytest.raises(SealError) as caught:
        key_id(text)
    assert caught.value.reason is Reason.MALFORMED
    assert refusal(text, bound()) is Reason.MALFORMED


@given(payload=payloads, tail=st.text(min_size=1, max_size=12))
def test_a_token_with_text_before_or_after_it_is_refused(payload: bytes, tail: str) -> None:
    token = seal(payload, bound(), KEY, RANDOM)
    refusal(token + tail, bound())
    refusal(tail + token, bound())


@given(text=st.text(max_size=200))
def test_arbitrary_text_is_refused(text: str) -> None:
    refusal(text, bound())
    refusal(PREFIX + text, bound())
    refusal(f"{PREFIX}{KEY.id}.{text}", bound())


@pytest.mark.parametrize("spoiled", ["{}=", " {}", "{} ", "{}\n", "{}!"])
def test_only_the_canonical_encoding_of_a_token_opens(spoiled: str) -> None:
    head, _, body = seal(b"hello", bound(), KEY, RANDOM).rpartition(".")
    assert refusal(f"{head}.{spoiled.format(body)}", bound()) in {
        Reason.NOT_CANONICAL,
        Reason.MALFORMED,
    }


def test_the_standard_base64_alphabet_is_refused() -> None:
    token = next(
        token
        for n in range(256)
        if {"-", "_"} <= set(token := seal(b"hello", bound(), KEY, bytes([n]) * 24))
    )
    assert refusal(token.replace("-", "+"), bound()) is Reason.NOT_CANONICAL
    assert refusal(token.replace("_", "/"), bound()) is Reason.NOT_CANONICAL


def test_unused_bits_of_the_last_character_must_be_zero() -> None:
    token = seal(b"", bound(), KEY, RANDOM)  # 40 bytes: the last character carries 2 unused bits
    last = ALPHABET.index(token[-1])
    for bits in (1, 2, 3):
        assert refusal(token[:-1] + ALPHABET[last | bits], bound()) is Reason.NOT_CANONICAL


@pytest.mark.parametrize("sealed_for", Purpose)
@pytest.mark.parametrize("opened_as", Purpose)
def test_a_token_does_not_open_for_another_purpose(sealed_for: Purpose, opened_as: Purpose) -> None:
    token = seal(b"x", bound(sealed_for), KEY, RANDOM)
    limit = 10_000  # the limits differ too; with this one only the seal decides
    if sealed_for is opened_as:
        assert unseal(token, bound(opened_as), RING, limit) == b"x"
    else:
        assert refusal(token, bound(opened_as), limit=limit) is Reason.NOT_AUTHENTIC


@given(purpose=purposes, other=st.uuids())
def test_a_token_does_not_open_for_another_tenant(purpose: Purpose, other: UUID) -> None:
    token = seal(b"x", bound(purpose), KEY, RANDOM)
    assert refusal(token, bound(purpose, other)) is Reason.NOT_AUTHENTIC


@given(purpose=purposes, salt=st.binary(min_size=32, max_size=32).filter(lambda s: s != SALT))
def test_a_token_does_not_open_with_another_salt(purpose: Purpose, salt: bytes) -> None:
    token = seal(b"x", bound(purpose), KEY, RANDOM)
    assert refusal(token, bound(purpose, salt=salt)) is Reason.NOT_AUTHENTIC


@given(salt=st.binary(max_size=80).filter(lambda s: len(s) != 32))
def test_an_incomplete_salt_neither_seals_nor_opens(salt: bytes) -> None:
    token = seal(b"x", bound(), KEY, RANDOM)
    assert refusal(token, bound(salt=salt)) is Reason.BAD_SALT
    with pytest.raises(SealError) as caught:
        seal(b"x", bound(salt=salt), KEY, RANDOM)
    assert caught.value.reason is Reason.BAD_SALT


def test_a_token_of_a_key_removed_from_the_ring_is_refused() -> None:
    token = seal(b"x", bound(), KEY, RANDOM)
    ring = Ring(OTHER_KEY, {OTHER_KEY.id: OTHER_KEY})
    assert refusal(token, bound(), ring) is Reason.UNKNOWN_KEY


def test_a_token_of_a_key_that_no_longer_seals_still_opens() -> None:
    token = seal(b"x", bound(), KEY, RANDOM)
    ring = Ring(OTHER_KEY, {KEY.id: KEY, OTHER_KEY.id: OTHER_KEY})
    assert unseal(token, bound(), ring) == b"x"


def test_a_token_does_not_open_with_another_secret_under_the_same_key_id() -> None:
    token = seal(b"x", bound(), KEY, RANDOM)
    impostor = Key(KEY.id, bytes(32))
    ring = Ring(impostor, {KEY.id: impostor})
    assert refusal(token, bound(), ring) is Reason.NOT_AUTHENTIC


def test_a_token_renamed_to_another_key_of_the_ring_is_refused() -> None:
    token = seal(b"x", bound(), KEY, RANDOM)
    renamed = token.replace(".k1.", ".k2.")
    assert refusal(renamed, bound()) is Reason.NOT_AUTHENTIC


def test_the_key_id_is_authenticated_even_when_two_ids_share_a_secret() -> None:
    twin = Key("k9", KEY.secret)
    ring = Ring(KEY, {KEY.id: KEY, twin.id: twin})
    renamed = seal(b"x", bound(), KEY, RANDOM).replace(".k1.", ".k9.")
    assert refusal(renamed, bound(), ring) is Reason.NOT_AUTHENTIC


@given(first=st.integers(0, 3000), second=st.integers(0, 3000))
def test_the_length_of_a_sealed_state_reveals_only_its_padding_step(
    first: int, second: int
) -> None:
    lengths = [len(seal(bytes(n), bound(Purpose.STATE), KEY, RANDOM)) for n in (first, second)]
    same_step = first // STATE_STEP == second // STATE_STEP
    assert (lengths[0] == lengths[1]) is same_step


@pytest.mark.parametrize("purpose", sorted(set(Purpose) - {Purpose.STATE}))
def test_only_states_are_padded(purpose: Purpose) -> None:
    assert len(body_of(seal(b"12345", bound(purpose), KEY, RANDOM))) == 24 + 5 + 16


@given(zeros=st.integers(0, 1100))
def test_payloads_that_look_like_padding_open_unchanged(zeros: int) -> None:
    payload = b"\x80" + bytes(zeros)
    binding = bound(Purpose.STATE)
    assert unseal(seal(payload, binding, KEY, RANDOM), binding, RING) == payload


@pytest.mark.parametrize(
    "plaintext",
    [b"", bytes(512), b"x" * 512, b"hello\x80", b"hello\x80" + bytes(505)],
    ids=["empty", "no marker", "full", "no zeros", "one short of a step"],
)
def test_a_state_with_wrong_padding_is_refused_even_if_authentic(plaintext: bytes) -> None:
    token = sealed_by_hand(plaintext, Purpose.STATE)
    assert refusal(token, bound(Purpose.STATE)) is Reason.BAD_PADDING


@pytest.mark.parametrize("purpose", sorted(set(Purpose) - {Purpose.ROW}))
def test_a_payload_too_large_for_its_purpose_is_not_sealed(purpose: Purpose) -> None:
    with pytest.raises(SealError) as caught:
        seal(bytes(LIMITS[purpose]), bound(purpose), KEY, RANDOM)
    assert caught.value.reason is Reason.TOO_LARGE
    assert str(caught.value) == TEXT


@pytest.mark.parametrize("purpose", sorted(set(Purpose) - {Purpose.ROW}))
def test_a_token_too_large_for_its_purpose_is_not_opened(purpose: Purpose) -> None:
    token = seal(bytes(LIMITS[purpose]), bound(purpose), KEY, RANDOM, limit=10**6)
    assert refusal(token, bound(purpose)) is Reason.TOO_LARGE
    assert unseal(token, bound(purpose), RING, limit=10**6) == bytes(LIMITS[purpose])


def test_the_limit_is_the_longest_token_allowed() -> None:
    token = seal(b"hello", bound(), KEY, RANDOM)
    exact = len(token)
    assert seal(b"hello", bound(), KEY, RANDOM, limit=exact) == token
    assert unseal(token, bound(), RING, limit=exact) == b"hello"
    assert refusal(token, bound(), limit=exact - 1) is Reason.TOO_LARGE
    with pytest.raises(SealError):
        seal(b"hello", bound(), KEY, RANDOM, limit=exact - 1)


def test_the_maximum_token_lengths_that_clients_rely_on() -> None:
    assert set(LIMITS) == set(Purpose)
    assert LIMITS[Purpose.SESSION] == 512
    assert LIMITS[Purpose.REQUEST_ID] <= 256
    assert LIMITS[Purpose.STATE] == 64 * 1024


@pytest.mark.parametrize("count", [0, 23, 25])
def test_sealing_without_exactly_24_random_bytes_is_refused(count: int) -> None:
    with pytest.raises(SealError) as caught:
        seal(b"x", bound(), KEY, bytes(count))
    assert caught.value.reason is Reason.BAD_RANDOMNESS


@pytest.mark.parametrize("key_id", ["", "K1", "a.b", "é", "a" * 17, "a\n"])
def test_an_ambiguous_key_id_is_refused(key_id: str) -> None:
    with pytest.raises(ValueError, match="key id"):
        Key(key_id, bytes(32))


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_that_is_not_32_bytes_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Key("k1", bytes(size))


def test_a_ring_with_inconsistent_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="active"):
        Ring(KEY, {})
    with pytest.raises(ValueError, match="active"):
        Ring(KEY, {KEY.id: Key(KEY.id, bytes(32))})
    with pytest.raises(ValueError, match="another id"):
        Ring(KEY, {KEY.id: KEY, "k9": OTHER_KEY})


def test_a_ring_does_not_change_with_the_mapping_passed_to_it() -> None:
    keys = {KEY.id: KEY}
    ring = Ring(KEY, keys)
    keys[OTHER_KEY.id] = OTHER_KEY
    assert isinstance(ring.opening, MappingProxyType)
    assert OTHER_KEY.id not in ring.opening


def test_secrets_do_not_appear_in_the_repr_of_keys_rings_and_bindings() -> None:
    shown = repr((KEY, RING, bound()))
    assert repr(KEY.secret) not in shown
    assert repr(SALT) not in shown
    assert "secret" not in shown
    assert "salt" not in shown
