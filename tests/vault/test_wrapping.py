from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.vault.errors import DamagedSecretError, MasterKeyMismatchError
from mcphost.vault.wrapping import kek_id, unwrap, wrap, wrappers

KEK = bytes(range(32))
OTHER_KEK = bytes(range(1, 33))
PLACE = "vault.ringkey:wrapped:k1"
NONCE = bytes(range(12))
SECRET = b"a secret of thirty-two bytes ...."
WRAPPED_BEFORE = "v1.591183460cd0.AAECAwQFBgcICQoLJiKlfqaXp2-tLvGrxYERH_evqkCHFH8eQROA9j1HLpwvOZ4R-iQRn9lDD3UZfEE35g=="


@given(
    secret=st.binary(max_size=100),
    place=st.text(max_size=50),
    nonce=st.binary(min_size=12, max_size=12),
)
def test_a_wrapped_secret_unwraps_in_its_own_place(secret: bytes, place: str, nonce: bytes):
    assert unwrap(wrap(secret, place, KEK, nonce), place, KEK) == secret


@given(place=st.text(max_size=50).filter(lambda place: place != PLACE))
def test_a_wrapped_secret_does_not_unwrap_in_another_place(place: str) -> None:
    with pytest.raises(DamagedSecretError, match="moved from another row"):
        unwrap(wrap(SECRET, PLACE, KEK, NONCE), place, KEK)


@pytest.mark.parametrize("wrapped", ["", "v2.abc.AAAA", "nonsense", "v1."])
def test_a_wrapped_text_of_unknown_version_is_refused(wrapped: str) -> None:
    with pytest.raises(MasterKeyMismatchError):
        unwrap(wrapped, PLACE, KEK)


def test_a_wrapped_secret_names_its_version_and_key_and_opens_in_later_releases() -> None:
    assert wrap(SECRET, PLACE, KEK, NONCE).startswith(f"v1.{kek_id(KEK)}.")
    assert kek_id(KEK) != kek_id(OTHER_KEK)
    assert not any(KEK[n : n + 2].hex() in kek_id(KEK) for n in range(31))
    assert unwrap(WRAPPED_BEFORE, PLACE, KEK) == SECRET


def test_a_secret_wrapped_by_two_keys_unwraps_with_either_and_no_third() -> None:
    both = f"{wrap(SECRET, PLACE, KEK, NONCE)} {wrap(SECRET, PLACE, OTHER_KEK, NONCE)}"
    assert wrappers(both) == {kek_id(KEK), kek_id(OTHER_KEK)}
    for keks in [(KEK,), (OTHER_KEK,), (KEK, OTHER_KEK), (bytes(32), OTHER_KEK)]:
        assert unwrap(both, PLACE, *keks) == SECRET
    with pytest.raises(MasterKeyMismatchError, match=f"{kek_id(KEK)} and|and {kek_id(KEK)}"):
        unwrap(both, PLACE, bytes(32))


def test_a_damaged_wrapping_is_reported_whatever_the_second_wrapping_is(
    spoil: Callable[[str], str],
) -> None:
    spoilt = spoil(wrap(SECRET, PLACE, KEK, NONCE))
    both = f"{spoilt} {wrap(SECRET, PLACE, OTHER_KEK, NONCE)}"
    for wrapped in (spoilt, both):
        with pytest.raises(DamagedSecretError, match=PLACE):
            unwrap(wrapped, PLACE, KEK)
    assert unwrap(both, PLACE, OTHER_KEK) == SECRET
