from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from mcphost.serving.process import lifecycle
from mcphost.transport.checks import check_deployment

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _deployed(settings: Settings, tmp_path: Path) -> None:
    settings.MCPHOST_HOST = "0.0.0.0"
    settings.MCPHOST_LOOPBACK = False
    settings.MCPHOST_HTTPS = True
    settings.ALLOWED_HOSTS = ["mcp.example.com"]
    settings.CSRF_TRUSTED_ORIGINS = []
    settings.MCPHOST_TOOLS = tmp_path
    settings.MCPHOST_EXPOSED = tuple


def test_a_good_deployment_passes() -> None:
    assert check_deployment() == []


def test_impossible_settings_are_errors_and_unsafe_ones_warnings(settings: Settings) -> None:
    settings.MCPHOST_TOOLS = Path("/nowhere")
    settings.MCPHOST_HTTPS = False
    found = {message.id: message.is_serious() for message in check_deployment()}
    assert found == {"mcphost.W104": False, "mcphost.E107": True}


def test_a_secret_file_readable_by_other_users_is_refused(settings: Settings) -> None:
    settings.MCPHOST_EXPOSED = lambda: (Path("/srv/master-key"),)
    (message,) = check_deployment()
    assert "/srv/master-key" in message.msg


@pytest.mark.postgresql
def test_more_connections_than_postgresql_allows_are_refused(settings: Settings) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW max_connections")
        (most,) = cursor.fetchone()
    settings.MCPHOST_DJANGO_REQUESTS = 8
    settings.MCPHOST_PROCESSES = int(most) // (lifecycle.CONNECTIONS + 8) + 1
    (message,) = check_deployment()
    assert message.id == "mcphost.E111"
    assert f"up to {lifecycle.CONNECTIONS + 8} connections each" in message.msg
