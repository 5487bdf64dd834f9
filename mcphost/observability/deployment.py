"""Rules for what cannot work in production (`manage.py check --deploy`), on plain facts.

Pure, so that every rule can be tested without a server. The caller, which knows Django, fills
`Deployment` from the settings and turns findings into system checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True)
class Connections:
    """Database connections: the most that one process opens, the number of processes, and how many
    the database allows (None if it could not be asked)."""

    per_process: int
    processes: int
    available: int | None


@dataclass(frozen=True, slots=True)
class Deployment:
    """The facts of one installation. `exposed` are paths that other users of the machine can read;
    `connections` is None where the database is a file."""

    host: str
    loopback: bool
    https: bool
    allowed_hosts: tuple[str, ...]
    trusted_origins: tuple[str, ...]
    tools: Path
    exposed: tuple[Path, ...]
    expose_demo: bool = False
    conformance: bool = False
    alone: bool = False
    redis: bool = False
    connections: Connections | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a deployment. A `fatal` one becomes an error, any other a warning."""

    id: str
    message: str
    hint: str
    fatal: bool = True


def findings(deployment: Deployment) -> tuple[Finding, ...]:
    """All problems of a deployment, in a fixed order."""
    return (*_addresses(deployment), *_exposure(deployment), *_processes(deployment))


def _addresses(deployment: Deployment) -> Iterator[Finding]:
    if "*" in deployment.allowed_hosts:
        yield Finding(
            "mcphost.E101",
            "MCPHOST_ALLOWED_HOSTS allows every Host: any web page can reach the server under its own "
            "host name (DNS rebinding).",
            "List the host names that clients use.",
        )
    elif not deployment.allowed_hosts:
        yield Finding(
            "mcphost.E102",
            "MCPHOST_ALLOWED_HOSTS is empty: every request will be refused.",
            "List the host names that clients use.",
        )
    elif not deployment.loopback and LOOPBACK_NAMES.issuperset(deployment.allowed_hosts):
        yield Finding(
            "mcphost.E103",
            f"The server listens on {deployment.host}, but MCPHOST_ALLOWED_HOSTS has only loopback "
            "names: clients on other machines will be refused.",
            "Add the host name that clients use to MCPHOST_ALLOWED_HOSTS.",
        )
    if not deployment.https:
        yield Finding(
            "mcphost.W104",
            "Tokens and session cookies are sent without HTTPS.",
            "Put a TLS proxy in front and set MCPHOST_HTTPS=1.",
            fatal=False,
        )
    for origin in deployment.trusted_origins:
        if deployment.https and not origin.startswith("https://"):
            yield Finding(
                "mcphost.E105",
                f"MCPHOST_TRUSTED_ORIGINS contains {origin}, which is not an HTTPS origin.",
                "Write origins as https://name, or set MCPHOST_HTTPS=0.",
            )


def _exposure(deployment: Deployment) -> Iterator[Finding]:
    for path in deployment.exposed:
        yield Finding(
            "mcphost.E106",
            f"Other users of this machine can read or write {path}.",
            f"chmod go= {path}",
        )
    if not deployment.tools.is_dir():
        yield Finding(
            "mcphost.E107",
            f"The tools folder {deployment.tools} does not exist.",
            "Set MCPHOST_TOOLS_PATH to the folder with your tools.",
        )
    if deployment.conformance:
        yield Finding(
            "mcphost.W108",
            "MCPHOST_CONFORMANCE is set: it serves a public tenant that needs no authentication.",
            "Set it only for tests.",
            fatal=False,
        )
    if deployment.expose_demo and not deployment.loopback:
        yield Finding(
            "mcphost.E109",
            "MCPHOST_EXPOSE_DEMO exposes the demo token and a generated password to the network.",
            "Do not set it in production.",
        )


def _processes(deployment: Deployment) -> Iterator[Finding]:
    if deployment.alone and deployment.redis:
        yield Finding(
            "mcphost.E110",
            "REDIS_URL is set, but SQLite allows only one serving process.",
            "Set DATABASE_URL to a PostgreSQL database, or unset REDIS_URL.",
        )
    connections = deployment.connections
    if connections is None:
        return
    needed = connections.per_process * connections.processes
    if connections.available is None:
        yield Finding(
            "mcphost.W112",
            f"Could not read whether PostgreSQL allows the {needed} connections that are needed.",
            "Run the check again when the database is reachable.",
            fatal=False,
        )
    elif needed > connections.available:
        yield Finding(
            "mcphost.E111",
            f"{connections.processes} processes open up to {connections.per_process} connections "
            f"each, {needed} in total; PostgreSQL allows {connections.available}.",
            "Raise max_connections (or the limit of the role or the database), lower "
            "MCPHOST_DJANGO_REQUESTS, or set MCPHOST_PROCESSES to the actual number.",
        )
