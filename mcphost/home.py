"""The data folder (`MCPHOST_HOME`) and the secrets in it.

Only `manage.py init` and `up` write secrets: keys with `prepare`, and the passwords and the token
of the accounts that they create. All other code only reads, and fails when something is missing.
"""

import base64
import fcntl
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MASTER_KEY_BYTES = 32
_MASTER_KEY = ("MCPHOST_MASTER_KEY", "MCPHOST_MASTER_KEY_FILE")
_SECRET_KEY = b"mcphost: the secret key of Django"


class HomeError(Exception):
    """The data folder or a secret in it is missing or unusable; the message says what helps."""


@dataclass(frozen=True, slots=True)
class Home:
    """Paths inside the data folder. Secrets are files of mode 0600 in a folder of mode 0700."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "db.sqlite3"

    @property
    def secret_key(self) -> Path:
        return self.path / "secret-key"

    @property
    def master_key(self) -> Path:
        return self.path / "master-key"

    @property
    def new_master_key(self) -> Path:
        return self.path / "new-master-key"

    @property
    def admin_password(self) -> Path:
        return self.path / "admin-password"

    @property
    def auditor_password(self) -> Path:
        """The file with the password of the demo's auditor."""
        return self.path / "auditor-password"

    @property
    def demo_token(self) -> Path:
        return self.path / "demo-token"

    @property
    def password_checks(self) -> Path:
        """The file with the last results of comparing generated passwords, each under a keyed digest."""
        return self.path / "password-checks"

    @property
    def mark(self) -> Path:
        """The file that marks the folder as ours, and its secrets as all written once."""
        return self.path / "mcphost-home"

    def secrets(self) -> tuple[Path, ...]:
        return (
            self.secret_key,
            self.master_key,
            self.new_master_key,
            self.admin_password,
            self.auditor_password,
            self.demo_token,
            self.password_checks,
        )

    def is_ours(self) -> bool:
        """Return whether the folder was used before; one with only foreign files was not."""
        return any(path.exists() for path in (self.mark, self.database, *self.secrets()))


def locate() -> Home:
    """Return the data folder named by `MCPHOST_HOME`, `./var` by default. It need not exist yet."""
    return Home(Path(os.environ.get("MCPHOST_HOME") or "var").resolve())


def prepare() -> Home:
    """Create the data folder and every secret that is missing. Existing ones are left alone.

    A master key is written only once per folder: a second one could not unwrap what the first one
    wrapped. Raises HomeError if the key is gone, and if the folder holds other files.
    """
    home = locate()
    try:
        home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with one_at_a_time(home):
            if not home.is_ours() and any(home.path.iterdir()):
                raise HomeError(
                    f"{home.path} contains other files: set MCPHOST_HOME to an empty or a new folder"
                )
            home.path.chmod(0o700)
            _write_keys(home)
            write_secret(
                home.mark, "The data folder of an mcphost. Back it up as a whole; keep it secret."
            )
    except OSError as error:
        raise HomeError(
            f"cannot write {error.filename or home.path}: {error.strerror} (MCPHOST_HOME sets the folder)"
        ) from None
    return home


@contextmanager
def one_at_a_time(home: Home) -> Iterator[None]:
    """Keep other processes on this machine from setting up the same folder meanwhile; they wait.

    The folder itself is locked, so that no lock file lies in it. Raises OSError.
    """
    descriptor = os.open(home.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write_keys(home: Home) -> None:
    if not _is_any_set(*_MASTER_KEY):
        # The master key is written first: if a later file exists, the key existed or was given.
        later = (home.mark, home.database, home.secret_key)
        was_finished = any(path.exists() for path in later)
        if home.is_ours() and not home.master_key.exists() and was_finished:
            raise HomeError(
                f"the master key {home.master_key} is missing, and data encrypted with it cannot be "
                "decrypted without it: restore it from a backup, or set MCPHOST_MASTER_KEY"
            )
        write_secret(home.master_key, base64.b64encode(secrets.token_bytes(32)).decode())
    if not _is_any_set("MCPHOST_SECRET_KEY", *_MASTER_KEY) and not home.secret_key.exists():
        write_secret(home.secret_key, _derived(read_master_key(home)))


def _derived(master_key: bytes) -> str:
    """Derive Django's secret key from a master key: machines that share it share sign-ins."""
    return base64.urlsafe_b64encode(hmac.digest(master_key, _SECRET_KEY, "sha512")).decode()


def write_secret(path: Path, value: str) -> bool:
    """Write `value` to a new file of mode 0600; False if the file is already there.

    The file appears with all of its content or not at all. Raises OSError.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(value + "\n")
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(part)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def read_secret_key(home: Home) -> str:
    """Return Django's `SECRET_KEY`, from `MCPHOST_SECRET_KEY`, the data folder or the master key.

    If the master key comes from the environment, the secret key is derived each time and not
    stored, so that a wrong master key leaves nothing behind. Raises HomeError if there is none.
    """
    value = os.environ.get("MCPHOST_SECRET_KEY") or read(home.secret_key)
    if not value and _is_any_set(*_MASTER_KEY):
        value = _derived(read_master_key(home))
    if not value:
        raise HomeError(
            f"no secret key: set MCPHOST_SECRET_KEY, or run `manage.py init` to write {home.secret_key}"
        )
    return value


def read_future_secret_keys(home: Home) -> list[str]:
    """Return Django's future secret key, if it will be derived from the new master key.

    With it, processes that still use the old master key accept the sign-ins of processes that use
    the new one. Raises HomeError.
    """
    if os.environ.get("MCPHOST_SECRET_KEY") or read(home.secret_key):
        return []
    new = read_new_master_key(home)
    return [_derived(new)] if new else []


def read_master_key(home: Home) -> bytes:
    """Return the 32-byte key-encryption key: base64 in the environment, a file or the data folder.

    Raises HomeError if it is missing or is not 32 bytes of base64.
    """
    path = Path(os.environ.get("MCPHOST_MASTER_KEY_FILE") or home.master_key)
    text = os.environ.get("MCPHOST_MASTER_KEY") or read(path)
    if not text:
        raise HomeError(
            f"no master key in {path}: set MCPHOST_MASTER_KEY or MCPHOST_MASTER_KEY_FILE, "
            "or run `manage.py init` to write one for a new data folder"
        )
    return _key("the master key", text)


def read_new_master_key(home: Home) -> bytes:
    """Return the master key that is to replace the one in use; empty when none is given.

    It has the same format. If a file is named for it, the file need not exist yet, or any more.
    Raises HomeError if it is not 32 bytes of base64.
    """
    path = Path(os.environ.get("MCPHOST_NEW_MASTER_KEY_FILE") or home.new_master_key)
    text = os.environ.get("MCPHOST_NEW_MASTER_KEY") or read(path)
    return _key("the new master key", text) if text else b""


def _key(name: str, text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise HomeError(
            f"{name} must be 32 bytes, written as base64 (`openssl rand -base64 32` creates one)"
        )
    return key


def exposed(home: Home) -> tuple[Path, ...]:
    """Return the paths in the data folder that other users of the machine can read or write."""
    paths = (home.path, home.database, *home.secrets())
    other_users = stat.S_IRWXG | stat.S_IRWXO
    return tuple(
        path
        for path in paths
        if path.exists()
        and path.stat().st_mode & other_users
        # In a folder that is closed to others, only the secrets must be closed themselves.
        and (path != home.database or home.path.stat().st_mode & other_users)
    )


def _is_any_set(*names: str) -> bool:
    return any(os.environ.get(name) for name in names)


def read(path: Path) -> str:
    """Return the text of a secret's file; empty if there is none.

    Raises HomeError if it cannot be read.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise HomeError(f"cannot read {path}: {reason}") from None
