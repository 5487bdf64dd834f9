"""What the kernel knows of a process (`/proc`, so Linux only): its time on processors, its memory."""

import os
from pathlib import Path

PROC = Path("/proc")
TICKS: int = os.sysconf("SC_CLK_TCK")
PAGE: int = os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    """Seconds that a process has spent on processors, in its own code and in the kernel's."""
    return parse_ticks((PROC / str(pid) / "stat").read_text()) / TICKS


def family_cpu_seconds(pid: int) -> float:
    """The same of a process and its descendants, of which those that have ended count as well."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            parents.setdefault(parse_parent(stat), []).append((int(entry.name), stat))
    own = (PROC / str(pid) / "stat").read_text()
    family = [(pid, own)]
    for child, _ in family:
        family += parents.get(child, ())
    return sum(parse_ticks(stat) + parse_ended_ticks(stat) for _, stat in family) / TICKS


def backends_cpu_seconds(database: str) -> float:
    """The same of the processes of PostgreSQL, on this machine, that serve connections to a database."""
    spent = 0
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_text()
                if command.startswith("postgres:") and f" {database} " in command:
                    spent += parse_ticks((entry / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
    return spent / TICKS


def memory_bytes(pid: int) -> int:
    """How much of a process lies in memory."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE


def parse_ticks(stat: str) -> int:
    """User and system ticks of a line of `/proc/<pid>/stat` (its second field may hold anything)."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def parse_ended_ticks(stat: str) -> int:
    """The ticks of a process's children that have ended and were waited for."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])


def parse_parent(stat: str) -> int:
    """The process that started this one."""
    return int(stat.rpartition(")")[2].split()[1])
