import pytest
from pytest_django import Settings

from mcphost.vault.errors import MasterKeyMismatchError
from mcphost.vault.master import MasterKeys, master_key, master_keys


def test_the_master_key_is_read_from_its_setting_at_every_call(give_master_key, lose_master_key):
    for key in (bytes(32), bytes(range(32))):
        give_master_key(key)
        assert master_key() == key
    give_master_key(bytes(16))
    with pytest.raises(MasterKeyMismatchError, match="32 bytes"):
        master_key()
    lose_master_key()
    with pytest.raises(MasterKeyMismatchError, match="set MCPHOST_MASTER_KEY"):
        master_key()


def test_a_second_master_key_may_be_set_as_the_replacement(settings: Settings) -> None:
    def unusable() -> bytes:
        raise LookupError("the new master key must be 32 bytes")

    assert master_keys() == MasterKeys(master_key())
    settings.MCPHOST_NEW_MASTER_KEY = lambda: bytes(range(32))
    assert master_keys().all() == (master_key(), bytes(range(32)))
    settings.MCPHOST_NEW_MASTER_KEY = master_key
    assert master_keys().all() == (master_key(),)
    assert repr(master_key()) not in repr(master_keys())
    settings.MCPHOST_NEW_MASTER_KEY = unusable
    with pytest.raises(MasterKeyMismatchError, match="the new master key must be"):
        master_keys()


def test_a_new_master_key_moved_into_place_between_two_reads_is_never_missed(settings: Settings):
    """`mv new-master-key master-key` between reading the one and the other."""
    old, new = bytes(32), bytes(range(32))
    files = {"new": new, "master": old}

    def read_new_then_move() -> bytes:
        files["master"] = files.pop("new")
        return new

    settings.MCPHOST_NEW_MASTER_KEY = read_new_then_move
    settings.MCPHOST_MASTER_KEY = lambda: files["master"]
    assert new in master_keys().all()
