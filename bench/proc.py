"""What the kernel knows of a process (`/proc`, so Linux only): its time on processors, its memory."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS: int = os.sysconf("SC_CLK_TCK")
PAGE: int = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """Seconds that a process has spent on processors, in its own code and in the kernel's."""
    return parse_ticks((PROC / str(pid) / "stat").read_text()) / TICKS


def memory_bytes(pid: int) -> int:
    """How much of a process lies in memory."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE


def parse_ticks(stat: str) -> int:
    """User and system ticks of a line of `/proc/<pid>/stat` (its second field may hold anything)."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
