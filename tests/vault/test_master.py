from collections.abc import Callable

import pytest

from mcphost.vault.errors import MasterKeyMismatch
from mcphost.vault.master import master_key


def test_the_master_key_is_read_from_its_place_at_every_call(
    give_master_key: Callable[[bytes], None],
) -> None:
    give_master_key(bytes(32))
    assert master_key() == bytes(32)
    give_master_key(bytes(range(32)))
    assert master_key() == bytes(range(32))


def test_a_missing_master_key_says_what_its_place_says(lose_master_key: Callable[[], None]) -> None:
    lose_master_key()
    with pytest.raises(MasterKeyMismatch, match="set MCPHOST_MASTER_KEY"):
        master_key()


def test_a_master_key_of_another_size_is_refused(give_master_key: Callable[[bytes], None]) -> None:
    give_master_key(bytes(16))
    with pytest.raises(MasterKeyMismatch, match="32 bytes"):
        master_key()
