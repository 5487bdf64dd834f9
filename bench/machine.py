"""The facts that a figure means nothing without."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from tests.e2e.node_client import NODE


def facts() -> dict[str, str]:
    """What was measured on: processor, system, Python and the libraries that carry the servers."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gigabytes():.0f} GB",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "node": _node_version(),
        "uvicorn": f"{version('uvicorn')} (uvloop {version('uvloop')}, httptools {version('httptools')})",
    }


def _node_version() -> str:
    finished = subprocess.run([str(NODE), "--version"], capture_output=True, text=True, check=True)
    return finished.stdout.strip()


def _processor() -> str:
    return _field(Path("/proc/cpuinfo"), "model name") or platform.processor() or "unknown"


def _memory_gigabytes() -> float:
    total: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return total / 1024**3


def _field(path: Path, name: str) -> str:
    if not path.exists():
        return ""
    for line in path.read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return ""
