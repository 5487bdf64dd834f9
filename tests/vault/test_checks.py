from collections.abc import Callable
from uuid import uuid4

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from mcphost.vault.checks import check_master_key
from mcphost.vault.master import master_key
from mcphost.vault.services import ensure_ring, ensure_tenant

pytestmark = pytest.mark.django_db

STRANGE_KEY = bytes(range(32))


def found() -> list[str | None]:
    return [message.id for message in check_master_key(None, databases=["default"])]


def test_a_missing_master_key_is_an_error_once_there_are_keys(lose_master_key, give_master_key):
    right = master_key()
    lose_master_key()
    assert found() == []
    give_master_key(right)
    ensure_tenant(uuid4())
    assert found() == []
    lose_master_key()
    assert found() == ["vault.E001"]
    assert check_master_key in checks.registry.registry.registered_checks
    assert checks.Tags.database in check_master_key.tags


def test_a_wrong_master_key_stops_migrate_and_check(give_master_key: Callable[[bytes], None]):
    ensure_ring()
    give_master_key(STRANGE_KEY)
    with pytest.raises(SystemCheckError, match=r"vault\.E001"):
        call_command("check", databases=["default"])
    with pytest.raises(SystemCheckError, match=r"vault\.E001"):
        call_command("migrate", verbosity=0, skip_checks=False)
