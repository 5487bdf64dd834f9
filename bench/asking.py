"""A call of two legs: a tool asks one question, the retry brings the answer. Beside the Python SDK's
`Resolve`, and what of it sealing, opening and claiming cost."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from bench import peers
from bench.figures import Figure
from bench.load import Target
from bench.peers import Peer
from bench.processes import ROOT, Command
from mcphost.sealing import tokens
from mcphost.sealing.tokens import KEY_BYTES, RANDOM_BYTES, SALT_BYTES, Binding, Key, Purpose, Ring

TOOLS = ROOT / "bench" / "tools"
PAYLOAD_BYTES = (200, 4_000)
TENANT = UUID(int=1)


class SealingFigure(NamedTuple):
    """What one token of a payload costs, in seconds, and how long it is, in characters."""

    payload: int
    token: int
    seal: float
    unseal: float


def _server_command(folder: Path, port: int) -> Command:
    return peers.mcphost_command(folder, port, MCPHOST_TOOLS_PATH=str(TOOLS))


def with_room(sessions: int, changes_per_minute: int) -> Callable[[Path, int], Command]:
    """Our server with the tools that ask, for so many sessions, all of one token."""
    limits = {
        "MCPHOST_SESSIONS_PER_TOKEN": str(sessions),
        "MCPHOST_SESSION_CHANGES_PER_MINUTE": str(changes_per_minute),
    }
    return lambda folder, port: peers.mcphost_command(
        folder, port, MCPHOST_TOOLS_PATH=str(TOOLS), **limits
    )


def _asks(tool: str) -> Callable[[Path, int], Target]:
    def target(folder: Path, port: int) -> Target:
        return replace(peers.MCPHOST.target(folder, port), asks=tool)

    return target


def _sdk_target(folder: Path, port: int) -> Target:
    return replace(peers.SDK.target(folder, port), asks="ask")


MCPHOST = Peer("mcphost", "mcphost", _server_command, _asks("ask"))
UNCLAIMED = Peer(
    "mcphost-unclaimed", "mcphost, without the claim", _server_command, _asks("ask_unclaimed")
)
SDK = Peer(
    "sdk", f"{peers.SDK.label}, `Resolve`", peers.script("sdk_asking_server.py"), _sdk_target
)
ALL = (MCPHOST, UNCLAIMED, SDK)


def claim_seconds(figures: Sequence[Figure]) -> float | None:
    """What a claim adds to the CPU time that a call takes; None without both figures."""
    rows = {figure.name: figure for figure in figures}
    if not {"mcphost", "mcphost-unclaimed"} <= rows.keys():
        return None
    claimed = rows["mcphost"]
    return claimed.cpu * (1 - 1 / claimed.cpu_ratios["mcphost-unclaimed"])


def sealing(times: int) -> tuple[SealingFigure, ...]:
    """What sealing and opening a state cost, each done so many times."""
    return tuple(_sealing(bytes(size), times) for size in PAYLOAD_BYTES)


def _sealing(payload: bytes, times: int) -> SealingFigure:
    binding = Binding(Purpose.STATE, TENANT, secrets.token_bytes(SALT_BYTES))
    key = Key("bench", secrets.token_bytes(KEY_BYTES))
    ring = Ring(key, {key.id: key})

    def seal() -> str:
        return tokens.seal(payload, binding, key, secrets.token_bytes(RANDOM_BYTES))

    token = seal()
    return SealingFigure(
        payload=len(payload),
        token=len(token),
        seal=_seconds_per_call(seal, times),
        unseal=_seconds_per_call(lambda: tokens.unseal(token, binding, ring), times),
    )


def _seconds_per_call(does: Callable[[], object], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        does()
    return (time.perf_counter() - began) / times
