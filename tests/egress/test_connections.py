"""Tests that every module that may open a connection is listed here, with the reason.

Only `mcphost.egress` connects to addresses that a tenant influences. The others connect to what
the operators of the platform configure, or open no outgoing connection at all.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from mcphost import settings

ROOT = Path(__file__).resolve().parent.parent.parent

EGRESS = "the one way to addresses that a tenant influences"
OPERATORS = {
    "mcphost/egress/client.py": EGRESS,
    "mcphost/egress/connecting.py": EGRESS,
    "mcphost/egress/reading.py": EGRESS,
    "mcphost/egress/streams.py": EGRESS,
    "mcphost/observability/otel.py": "telemetry: OTEL_EXPORTER_OTLP_ENDPOINT",
    "mcphost/audit/writer/sinks.py": "the database: DATABASE_URL",
    "mcphost/serving/database.py": "the database: DATABASE_URL",
    "mcphost/serving/tasks/job_worker.py": "the database: DATABASE_URL",
    "mcphost/tasks/jobs.py": "the database: DATABASE_URL",
    "mcphost/audit/summaries/follower.py": "none: the class of an error of PostgreSQL",
    "mcphost/catalogue/kinds.py": "none: whether its thread is in a transaction",
    "mcphost/console/mail.py": "the SMTP server: MCPHOST_SMTP_URL",
    "mcphost/console/search.py": "none: the class of an error of PostgreSQL",
    "mcphost/feed/nodes.py": "none: the name of this machine",
    "mcphost/identity/idempotency.py": "none: the class of an error of PostgreSQL",
    "mcphost/sandbox/processes.py": "none: a pair of sockets with each of its workers",
    "mcphost/sandbox/single.py": "none: a pair of sockets with the process of a job",
    "mcphost/sandbox/single_worker.py": "none: the socket that it was started with",
    "mcphost/sandbox/users.py": "none: a name on this machine, by which a user id is reserved",
    "mcphost/sandbox/worker.py": "none: the socket that it was started with",
    "mcphost/transport/management/commands/worker.py": "none: the sockets that it listens on",
    "mcphost/transport/server/operations_port.py": "none: the sockets that it listens on",
    "mcphost/transport/server/graceful_shutdown.py": "none: the sockets that it listens on",
    "mcphost/transport/server/port_check.py": "none: whether HOST and PORT can be listened on",
}
# Django opens these by their names in the settings.
BACKENDS = {
    "django.db.backends.sqlite3": "the database: DATABASE_URL",
    "django.db.backends.postgresql": "the database: DATABASE_URL",
    "channels.layers.InMemoryChannelLayer": "none",
    "channels_redis.pubsub.RedisPubSubChannelLayer": "Redis: REDIS_URL",
}

LOCAL_STORAGES = {
    "django.core.files.storage.FileSystemStorage",
    "mcphost.console.static_files.VersionedStorage",
}

CONNECTING = frozenset(
    """
    aiohttp anyio asyncpg channels_redis ftplib http.client httpcore2 httpx httpx2 imaplib
    multiprocessing opentelemetry.exporter poplib procrastinate psycopg psycopg_pool pycurl redis
    requests smtplib socket telnetlib urllib.request urllib3 websocket websockets xmlrpc
    """.split()  # noqa: SIM905
)
CALLS = frozenset(
    """
    create_connection create_datagram_endpoint create_unix_connection get_connection mail_admins
    mail_managers open_connection open_unix_connection send_mail send_mass_mail sock_connect
    """.split()  # noqa: SIM905
)


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def connects(node: ast.AST) -> bool:
    """Return whether a statement imports or calls something that opens connections."""
    names = [name for full in imported(node) for name in (full, full.split(".")[0], _two(full))]
    if any(name in CONNECTING for name in names) or any(
        name.startswith("opentelemetry.exporter.") for name in names
    ):
        return True
    return isinstance(node, ast.Attribute | ast.Name) and _name(node) in CALLS


def _two(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def test_every_module_that_may_connect_is_listed_with_its_reason():
    found = {
        str(path.relative_to(ROOT))
        for folder in ("mcphost", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if any(map(connects, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == set(OPERATORS)


def test_every_backend_that_connects_is_listed():
    tree = ast.parse(Path(settings.__file__).read_text())
    found = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if node.value.startswith(("django.db.backends.", "channels")) and node.value != "channels"
    }
    assert found == set(BACKENDS)


def test_no_cache_or_storage_backend_that_connects_is_configured_and_mail_is_off_by_default():
    """Caches of Django keep to their defaults, and nothing uses them."""
    configured = {
        target.id
        for node in ast.parse(Path(settings.__file__).read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert not {name for name in configured if name.startswith("CACHES")}
    assert settings.EMAIL_BACKEND == "django.core.mail.backends.dummy.EmailBackend"
    assert {each["BACKEND"] for each in settings.STORAGES.values()} == LOCAL_STORAGES


def test_no_loopback_port_is_open_by_default():
    assert not settings.MCPHOST_EGRESS_LOOPBACK_PORTS
