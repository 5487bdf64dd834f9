"""The data folder (`MCPHOST_HOME`) and the secrets in it.

Only `prepare`, which `manage.py init` calls, ever writes a secret; everything else reads, and
refuses to go on when something is missing.
"""

import base64
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

MASTER_KEY_BYTES = 32


class HomeError(Exception):
    """The data folder or a secret in it is missing or unusable; the message says what would help."""


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
    def admin_password(self) -> Path:
        return self.path / "admin-password"

    @property
    def demo_token(self) -> Path:
        return self.path / "demo-token"


def locate() -> Home:
    """The data folder named by `MCPHOST_HOME`, `./var` by default. It need not exist yet."""
    return Home(Path(os.environ.get("MCPHOST_HOME", "var")).resolve())


def prepare() -> Home:
    """Make the data folder and every secret that is missing. Existing ones are left alone."""
    home = locate()
    home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.path.chmod(0o700)
    if "MCPHOST_SECRET_KEY" not in os.environ:
        write_secret(home.secret_key, secrets.token_urlsafe(48))
    if not {"MCPHOST_MASTER_KEY", "MCPHOST_MASTER_KEY_FILE"} & os.environ.keys():
        write_secret(home.master_key, base64.b64encode(secrets.token_bytes(32)).decode())
    return home


def write_secret(path: Path, value: str) -> bool:
    """Write `value` to a new file of mode 0600; False if the file is already there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return False
    with os.fdopen(descriptor, "w") as file:
        file.write(value + "\n")
    return True


def read_secret_key(home: Home) -> str:
    """Django's `SECRET_KEY`, from `MCPHOST_SECRET_KEY` or the data folder.

    Raises HomeError if there is none.
    """
    value = os.environ.get("MCPHOST_SECRET_KEY") or _read(home.secret_key)
    if not value:
        raise HomeError(
            f"no secret key: set MCPHOST_SECRET_KEY, or run `manage.py init` to write {home.secret_key}"
        )
    return value


def read_master_key(home: Home) -> bytes:
    """The 32-byte key-encryption key, base64 in the environment, a named file or the data folder.

    Raises HomeError if it is missing or is not 32 bytes of base64.
    """
    named = os.environ.get("MCPHOST_MASTER_KEY_FILE")
    text = os.environ.get("MCPHOST_MASTER_KEY") or _read(Path(named) if named else home.master_key)
    if not text:
        raise HomeError(
            "no master key: set MCPHOST_MASTER_KEY or MCPHOST_MASTER_KEY_FILE, "
            f"or run `manage.py init` to write {home.master_key}"
        )
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise HomeError("the master key must be 32 bytes, written as base64")
    return key


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        return ""
