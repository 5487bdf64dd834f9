import base64
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcphost import home
from mcphost.home import Home, HomeError

VARIABLES = (
    "MCPHOST_HOME",
    "MCPHOST_SECRET_KEY",
    "MCPHOST_MASTER_KEY",
    "MCPHOST_MASTER_KEY_FILE",
    "MCPHOST_NEW_MASTER_KEY",
    "MCPHOST_NEW_MASTER_KEY_FILE",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A data folder that does not exist yet, and an environment without other variables of ours."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "data"
    monkeypatch.setenv("MCPHOST_HOME", str(path))
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_data_folder_is_var_unless_the_environment_names_another(monkeypatch, folder):
    assert home.locate().path == folder
    monkeypatch.setenv("MCPHOST_HOME", "")
    assert home.locate().path == Path("var").resolve()


def test_preparing_creates_a_private_folder_and_private_secrets_once(folder):
    folder.mkdir(mode=0o755)
    prepared = home.prepare()
    assert mode(folder) == 0o700
    assert mode(prepared.secret_key) == mode(prepared.master_key) == 0o600
    assert len(home.read_master_key(prepared)) == 32
    assert len(home.read_secret_key(prepared)) >= 50
    before = {path.name: path.read_bytes() for path in prepared.path.iterdir()}
    home.prepare()
    assert {path.name: path.read_bytes() for path in prepared.path.iterdir()} == before
    assert {path.name for path in prepared.secrets()} == {
        "secret-key", "master-key", "new-master-key", "admin-password", "auditor-password",
        "demo-token", "password-checks",
    }  # fmt: skip
    assert os.path.commonpath(prepared.secrets()) == str(folder)


def test_a_folder_that_contains_other_files_is_refused(folder, tmp_path, monkeypatch):
    folder.mkdir(mode=0o755)
    (folder / "thesis.tex").touch()
    with pytest.raises(HomeError, match="contains other files"):
        home.prepare()
    assert mode(folder) == 0o755
    monkeypatch.setenv("MCPHOST_HOME", str(folder / "thesis.tex" / "data"))
    with pytest.raises(HomeError, match="MCPHOST_HOME"):
        home.prepare()


def test_secrets_from_the_environment_are_not_written_to_the_folder(monkeypatch):
    keys = {}
    for byte in (b"w", b"r", b"w"):  # a wrong master key leaves no secret key behind
        monkeypatch.setenv("MCPHOST_MASTER_KEY", base64.b64encode(byte * 32).decode())
        prepared = home.prepare()
        assert not prepared.secret_key.exists()
        assert not prepared.master_key.exists()
        assert home.read_master_key(prepared) == byte * 32
        key = home.read_secret_key(prepared)
        assert keys.setdefault(byte, key) == key
    assert len(set(keys.values())) == 2
    monkeypatch.setenv("MCPHOST_SECRET_KEY", "from-outside")
    assert home.read_secret_key(home.prepare()) == "from-outside"


def test_a_missing_master_key_is_never_replaced(folder):
    folder.mkdir()
    (folder / "db.sqlite3").touch()
    with pytest.raises(HomeError, match="restore it from a backup"):
        home.prepare()
    (folder / "db.sqlite3").unlink()
    prepared = home.prepare()
    prepared.master_key.unlink()
    with pytest.raises(HomeError, match="is missing"):
        home.prepare()
    assert not prepared.master_key.exists()


def test_the_master_key_may_be_in_its_own_file_and_without_a_key_nothing_starts(
    monkeypatch, tmp_path, folder
):
    with pytest.raises(HomeError, match="no secret key"):
        home.read_secret_key(Home(folder))
    with pytest.raises(HomeError, match="no master key"):
        home.read_master_key(Home(folder))
    path = tmp_path / "key"
    path.write_text(base64.b64encode(b"k" * 32).decode() + "\n")
    monkeypatch.setenv("MCPHOST_MASTER_KEY_FILE", str(path))
    assert home.read_master_key(Home(folder)) == b"k" * 32
    path.unlink()
    with pytest.raises(HomeError, match=str(path)):
        home.read_master_key(Home(folder))


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "ä" * 32,
        base64.b64encode(bytes(31)).decode(),
    ],
)
def test_a_master_key_that_is_not_32_bytes_is_refused(monkeypatch, folder, text):
    monkeypatch.setenv("MCPHOST_MASTER_KEY", text)
    with pytest.raises(HomeError, match="32 bytes"):
        home.read_master_key(Home(folder))


def test_the_new_master_key_comes_from_a_file_or_a_variable_and_is_optional(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path
) -> None:
    prepared = home.prepare()
    assert home.read_new_master_key(prepared) == b""
    prepared.new_master_key.write_text(base64.b64encode(b"a" * 32).decode())
    assert home.read_new_master_key(prepared) == b"a" * 32
    named = tmp_path / "mounted"
    monkeypatch.setenv("MCPHOST_NEW_MASTER_KEY_FILE", str(named))
    assert home.read_new_master_key(prepared) == b"", "the file need not be there yet"
    named.write_text(base64.b64encode(b"b" * 32).decode())
    assert home.read_new_master_key(prepared) == b"b" * 32
    monkeypatch.setenv("MCPHOST_NEW_MASTER_KEY", base64.b64encode(b"c" * 32).decode())
    assert home.read_new_master_key(prepared) == b"c" * 32
    monkeypatch.setenv("MCPHOST_NEW_MASTER_KEY", "short")
    with pytest.raises(HomeError, match="the new master key must be 32 bytes"):
        home.read_new_master_key(prepared)


def test_machines_on_the_old_master_key_accept_sessions_signed_with_the_new_one(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    old, new = (base64.b64encode(key * 32).decode() for key in (b"o", b"n"))
    monkeypatch.setenv("MCPHOST_MASTER_KEY", new)
    coming = home.read_secret_key(home.prepare())
    monkeypatch.setenv("MCPHOST_MASTER_KEY", old)
    assert home.read_future_secret_keys(home.prepare()) == []
    monkeypatch.setenv("MCPHOST_NEW_MASTER_KEY", new)
    assert home.read_future_secret_keys(home.prepare()) == [coming]
    monkeypatch.setenv("MCPHOST_SECRET_KEY", "one-for-all-and-not-made-of-anything")
    assert home.read_future_secret_keys(home.prepare()) == []


def test_an_unreadable_secret_is_refused_without_being_shown(folder):
    prepared = home.prepare()
    prepared.secret_key.write_bytes(b"\xff\xfe")
    with pytest.raises(HomeError, match="it is not text"):
        home.read_secret_key(prepared)
    prepared.secret_key.unlink()
    prepared.secret_key.mkdir()
    with pytest.raises(HomeError, match="cannot read"):
        home.read_secret_key(prepared)


def test_files_that_other_users_can_read_are_reported():
    prepared = home.prepare()
    prepared.database.touch(mode=0o644)
    assert home.exposed(prepared) == ()
    prepared.master_key.chmod(0o640)
    assert home.exposed(prepared) == (prepared.master_key,)
    prepared.path.chmod(0o755)
    assert home.exposed(prepared) == (prepared.path, prepared.database, prepared.master_key)


def test_machines_with_the_same_master_key_share_a_secret_key(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = home.prepare()
    monkeypatch.setenv("MCPHOST_HOME", str(tmp_path / "another"))
    assert home.read_secret_key(home.prepare()) != home.read_secret_key(first)
    monkeypatch.setenv("MCPHOST_HOME", str(tmp_path / "a-second-machine"))
    monkeypatch.setenv("MCPHOST_MASTER_KEY_FILE", str(first.master_key))
    assert home.read_secret_key(home.prepare()) == home.read_secret_key(first)


def test_a_folder_is_set_up_by_one_process_at_a_time(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        homes = list(pool.map(lambda _: home.prepare(), range(16)))
    assert len({home.read_secret_key(one) for one in homes}) == 1
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
