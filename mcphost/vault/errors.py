"""What can be wrong with keys. The messages are for operators and name no secret.

VaultError
    MasterKeyMismatch   the master key is missing, or is not the one that wrapped the keys
    DamagedSecretError  a wrapped secret was changed or moved
    NoActiveKeyError    the ring has no key to seal with
    NoSecretsError      the tenant has no secrets
    KeyRefusalError     what was asked cannot be done to this key, or not now
        UnknownKeyError there is no such key
"""


class VaultError(Exception):
    """Keys or secrets cannot be used."""


class MasterKeyMismatch(VaultError):  # noqa: N818 - a refusal to start that says what happened
    """The master key is missing, or another than the one under which the keys were wrapped."""


class DamagedSecretError(VaultError):
    """A wrapped secret does not open in its place: it was changed, or moved from another row."""


class NoActiveKeyError(VaultError):
    """There is no active key in the ring: `services.ensure_ring` was never run."""


class NoSecretsError(VaultError):
    """There is nothing for this tenant: `services.ensure_tenant` was never run."""


class KeyRefusalError(VaultError):
    """What was asked cannot be done to this key, or not now; the message says what would help."""


class UnknownKeyError(KeyRefusalError):
    """There is no key of that id in the ring."""

    def __init__(self, key_id: str) -> None:
        super().__init__(f"there is no key {key_id[:32]!r}")
