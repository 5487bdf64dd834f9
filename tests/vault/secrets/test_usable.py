"""A secret reveals its value only through `reveal()`."""

import copy
import json
import pickle
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from mcphost.vault.secrets.values import UsableSecret
from tests.vault.secrets.tenant_secret import NAME, VALUE


@pytest.fixture
def secret() -> UsableSecret:
    hosts = frozenset({"api.example.com", "other.example.com:8443"})
    return UsableSecret(NAME, hosts, frozenset({"header"}), lambda: VALUE)


def test_a_secret_shows_only_its_name(secret: UsableSecret) -> None:
    assert secret.reveal() == VALUE
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret!r:>40}", "%s" % secret):  # noqa: UP031
        assert VALUE not in shown
        assert NAME in shown


@pytest.mark.parametrize(
    "give_away",
    [
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        json.dumps,
        orjson.dumps,
        vars,
        dict,
        list,
        bytes,
        TypeAdapter(Any).dump_json,
    ],
)
def test_a_secret_cannot_be_copied_or_serialized(secret, give_away):
    with pytest.raises(Exception) as refused:
        give_away(secret)
    assert VALUE not in str(refused.value)


def test_a_secret_cannot_be_changed(secret: UsableSecret) -> None:
    with pytest.raises(AttributeError):
        secret.hosts = frozenset({"evil.example.com"})
    with pytest.raises(AttributeError):
        secret.anything = 1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del secret.places
    assert secret.places == {"header"}
