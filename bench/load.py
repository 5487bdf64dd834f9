"""One measurement: `wrk` against one address for a bounded time."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).parent / "call.lua"
ASKING = Path(__file__).parent / "ask.lua"
CONNECTIONS = 16
EACH_CONNECTIONS = (1, 16, 64)
GRACE_SECONDS = 30


class LoadError(Exception):
    """The load could not be made; the message says what would help."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the call goes, and the bearer token it carries (empty: none).

    `asks` names the tool that asks one question; empty, it is the echo that is called, `tool`.
    """

    url: str
    token: str = ""
    asks: str = ""
    tool: str = "echo"


@dataclass(frozen=True, slots=True)
class Sample:
    """What one measurement saw. Latencies in milliseconds; of calls of two legs they are those of a
    leg, and `requests` are the calls. `cpu` is in seconds, of all threads of the server's process;
    `cpu_afterwards` what it spent after the load, until it was idle."""

    requests: int
    seconds: float
    errors: int
    p50: float
    p99: float
    cpu: float = 0.0
    cpu_afterwards: float = 0.0

    @property
    def rate(self) -> float:
        """Answered requests per second."""
        return self.requests / self.seconds

    @property
    def cpu_per_call(self) -> float:
        """CPU seconds of the server for each answered request."""
        return self.cpu / max(self.requests, 1)

    @property
    def whole_cpu_per_call(self) -> float:
        """The same with the work afterwards."""
        return (self.cpu + self.cpu_afterwards) / max(self.requests, 1)


def require_wrk() -> str:
    """The path of `wrk`. Raises LoadError with the way to get it."""
    path = shutil.which("wrk")
    if path is None:
        raise LoadError(
            "the benchmark needs the load generator wrk: `apt-get install wrk` on Debian and "
            "Ubuntu, `brew install wrk` on macOS, or https://github.com/wg/wrk"
        )
    return path


def measure(target: Target, seconds: int, connections: int = CONNECTIONS) -> Sample:
    """Load `target` for `seconds`; every body is looked at, what is not the answer is an error."""
    command = [require_wrk(), "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "10s"]
    finished = subprocess.run(
        [*command, "-s", str(ASKING if target.asks else SCRIPT), target.url],
        env={**os.environ, "BENCH_TOKEN": target.token, "BENCH_TOOL": target.asks or target.tool},
        capture_output=True,
        text=True,
        timeout=seconds + GRACE_SECONDS,
        check=False,
    )
    return parse(finished.stdout, finished.stderr)


def parse(output: str, errors: str) -> Sample:
    for line in output.splitlines():
        if line.startswith("bench {"):
            fields = json.loads(line.removeprefix("bench "))
            return Sample(
                requests=fields["requests"],
                seconds=fields["microseconds"] / 1e6,
                errors=fields["errors"],
                p50=fields["p50"] / 1000,
                p99=fields["p99"] / 1000,
            )
    raise LoadError(f"wrk gave no figures: {(errors or output).strip()}")
