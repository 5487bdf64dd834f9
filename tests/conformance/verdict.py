"""Judges a run of the conformance suite by every check, not by its exit status alone.

The suite forgives warnings, skipped checks and everything it does not score, and a scenario that
tested nothing passes. So the checks that pass are counted, per scenario, against `expected.json`.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

BAD = frozenset({"FAILURE", "WARNING"})
_FOLDER = re.compile(
    r"(?:authorization-)?server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z"
)


@dataclass(frozen=True)
class Check:
    """One check of a scenario: its id, its status in the suite's words, and what went wrong."""

    id: str
    status: str
    message: str = ""


NOTHING = Check("ran", "FAILURE", "the suite left no checks behind")


@dataclass(frozen=True)
class Expected:
    """How many checks pass per scenario, and what may fail: scenarios, and checks of scenarios."""

    passing: Mapping[str, int]
    scenarios: frozenset[str]
    checks: frozenset[tuple[str, str]]


Results = Mapping[str, tuple[Check, ...]]


def read_expected(folder: Path) -> Expected:
    """The tables in a revision's folder. Raises ValueError for an entry that is in both."""
    passing = json.loads((folder / "expected.json").read_text())
    text = (folder / "expected-failures.yaml").read_text()
    entries = re.findall(r"^\s*- (\S+)$", text, re.MULTILINE)
    scenarios = frozenset(entry for entry in entries if ":" not in entry)
    checks = frozenset((s, i) for s, colon, i in (e.partition(":") for e in entries) if colon)
    if both := sorted(scenarios & passing.keys()):
        raise ValueError(f"expected to pass and to fail: {', '.join(both)}")
    return Expected(passing, scenarios, checks)


def read_results(folder: Path) -> dict[str, tuple[Check, ...]]:
    """Every check of every scenario that a run wrote into `folder` (`-o`)."""
    found = {}
    for path in sorted(folder.iterdir()):
        if match := _FOLDER.fullmatch(path.name):
            found[match["scenario"]] = _read_checks(path / "checks.json")
    return found


def _read_checks(path: Path) -> tuple[Check, ...]:
    if not path.exists():
        return (NOTHING,)
    checks = json.loads(path.read_text())
    return tuple(Check(c["id"], c["status"], c.get("errorMessage") or "") for c in checks)


def complaints(results: Results, expected: Expected) -> list[str]:
    """Everything that is not as expected, a sentence each."""
    return [
        *_missing(results, expected),
        *(line for name, checks in results.items() for line in _judge(name, checks, expected)),
        *_stale_checks(results, expected),
    ]


def _missing(results: Results, expected: Expected) -> Iterable[str]:
    for name in sorted((expected.passing.keys() | expected.scenarios) - results.keys()):
        yield f"{name}: it did not run"


def _judge(name: str, checks: tuple[Check, ...], expected: Expected) -> Iterable[str]:
    if name in expected.scenarios:
        if all(check.status not in BAD for check in checks) and passed(checks):
            yield f"{name}: it passes now; give it a row in expected.json"
        return
    for check in checks:
        if check.status in BAD and (name, check.id) not in expected.checks:
            yield f"{name}: {check.status} {check.id}: {check.message}"
    if name not in expected.passing:
        yield f"{name}: unknown; {passed(checks)} checks pass"
    elif passed(checks) != expected.passing[name]:
        yield f"{name}: {passed(checks)} checks pass, not {expected.passing[name]}"


def _stale_checks(results: Results, expected: Expected) -> Iterable[str]:
    for name, id in sorted(expected.checks):
        seen = [check.status for check in results.get(name, ()) if check.id == id]
        if not BAD.intersection(seen):
            yield f"{name}: {id} does not fail; take it out of expected-failures.yaml"


def passed(checks: tuple[Check, ...]) -> int:
    return sum(check.status == "SUCCESS" for check in checks)
