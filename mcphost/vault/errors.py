"""Errors of keys and secrets. The messages are for operators and contain no secret.

VaultError
    MasterKeyMismatchError   the master key is missing, or is not the one that wrapped the keys
    DamagedSecretError  a wrapped secret was changed or moved
        DamagedValueError   the value of a secret that a tenant stored was
    NoActiveKeyError    the ring has no key to seal with
    NoSecretsError      the tenant has no secrets
    KeyRefusalError     the operation is not possible for this key, or not now
        UnknownKeyError there is no such key
"""


class VaultError(Exception):
    """Keys or secrets cannot be used."""


class MasterKeyMismatchError(VaultError):
    """The master key is missing, or is not the one that wrapped the keys."""


class DamagedSecretError(VaultError):
    """A wrapped secret cannot be unwrapped: it was changed, or moved from another row."""


class DamagedValueError(DamagedSecretError):
    """The value of a secret that a tenant stored cannot be decrypted. `name` is the secret's."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the value of the secret {name!r} cannot be decrypted: it was modified, or moved from "
            "another row; type it in again"
        )


class NoActiveKeyError(VaultError):
    """The ring has no active key: `services.ensure_ring` was never run."""


class NoSecretsError(VaultError):
    """The tenant has no secrets: `services.ensure_tenant` was never run."""


class KeyRefusalError(VaultError):
    """The operation is not possible for this key, or not now; the message says what to do."""


class UnknownKeyError(KeyRefusalError):
    """The ring has no key of that id."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"there is no key {key_id[:32]!r}")
