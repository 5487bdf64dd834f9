"""What cannot work in production, told from plain facts (`manage.py check --deploy`).

Pure, so that every rule can be tried without a server; whoever knows Django fills `Deployment` from
the settings and turns findings into system checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True)
class Deployment:
    """The facts of one installation. `exposed` are paths that other users of the machine can read."""

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


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. A `fatal` one is a refusal, any other a warning."""

    id: str
    message: str
    hint: str
    fatal: bool = True


def findings(deployment: Deployment) -> tuple[Finding, ...]:
    """Everything that is wrong with a deployment, the same facts in the same order."""
    return (
        *_addresses(deployment),
        *_browsers(deployment),
        *_files(deployment),
        *_doors(deployment),
        *_processes(deployment),
    )


def _addresses(deployment: Deployment) -> Iterator[Finding]:
    if "*" in deployment.allowed_hosts:
        yield Finding(
            "mcphost.E101",
            "MCPHOST_ALLOWED_HOSTS allows every Host, so any web page can reach the server under a "
            "name of its own (DNS rebinding).",
            "List the names that clients use.",
        )
    elif not deployment.allowed_hosts:
        yield Finding(
            "mcphost.E102",
            "MCPHOST_ALLOWED_HOSTS is empty: every request will be refused.",
            "List the names that clients use.",
        )
    elif not deployment.loopback and LOOPBACK_NAMES.issuperset(deployment.allowed_hosts):
        yield Finding(
            "mcphost.E103",
            f"The server listens on {deployment.host}, but MCPHOST_ALLOWED_HOSTS has only names of "
            "this machine: clients elsewhere will be refused.",
            "Add the name that clients use to MCPHOST_ALLOWED_HOSTS.",
        )


def _browsers(deployment: Deployment) -> Iterator[Finding]:
    if not deployment.https:
        yield Finding(
            "mcphost.W104",
            "Tokens and sessions travel without HTTPS.",
            "Put a proxy with TLS in front and set MCPHOST_HTTPS=1.",
            fatal=False,
        )
    for origin in deployment.trusted_origins:
        if deployment.https and not origin.startswith("https://"):
            yield Finding(
                "mcphost.E105",
                f"MCPHOST_TRUSTED_ORIGINS has {origin}, which is not HTTPS.",
                "Write origins as https://name, or set MCPHOST_HTTPS=0.",
            )


def _files(deployment: Deployment) -> Iterator[Finding]:
    for path in deployment.exposed:
        yield Finding(
            "mcphost.E106",
            f"Other users of this machine can read or write {path}.",
            f"chmod go= {path}",
        )
    if not deployment.tools.is_dir():
        yield Finding(
            "mcphost.E107",
            f"There is no folder of tools at {deployment.tools}.",
            "Set MCPHOST_TOOLS_PATH to the folder with your tools.",
        )


def _doors(deployment: Deployment) -> Iterator[Finding]:
    if deployment.conformance:
        yield Finding(
            "mcphost.W108",
            "MCPHOST_CONFORMANCE serves a public tenant that anybody may call.",
            "Leave it unset outside of tests.",
            fatal=False,
        )
    if deployment.expose_demo and not deployment.loopback:
        yield Finding(
            "mcphost.E109",
            "MCPHOST_EXPOSE_DEMO offers the demo token and a generated password to the network.",
            "Leave it unset in production.",
        )


def _processes(deployment: Deployment) -> Iterator[Finding]:
    if deployment.alone and deployment.redis:
        yield Finding(
            "mcphost.E110",
            "REDIS_URL is for several processes, and with SQLite one process serves.",
            "Set DATABASE_URL to a PostgreSQL, or leave REDIS_URL unset.",
        )
