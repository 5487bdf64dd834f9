"""The recorded transcripts: one JSON file per group of scenarios."""

import difflib
import os
from pathlib import Path
from typing import Any

import orjson

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "transcripts"
RECORD = "EQUIVALENCE_RECORD"
"""The environment variable that has tests record instead of compare."""
AGAIN = "If the change is intended: python -m tests.equivalence --record"


def recording() -> bool:
    return bool(os.environ.get(RECORD))


def path_of(group: str) -> Path:
    return FOLDER / f"{group}.json"


def load(group: str) -> Json:
    path = path_of(group)
    found: Json = orjson.loads(path.read_bytes()) if path.exists() else {}
    return found


def record(group: str, name: str, observed: Json, known: list[str]) -> None:
    """Store a transcript; those of scenarios that are not `known` any more are dropped."""
    every = {**load(group), name: observed}
    kept = {one: every[one] for one in sorted(every) if one in known}
    path_of(group).write_bytes(orjson.dumps(kept, option=orjson.OPT_INDENT_2) + b"\n")


def compare(group: str, name: str, observed: Json) -> str:
    """How a transcript differs from the recorded one, field by field; empty if it is equal."""
    recorded = load(group).get(name)
    if recorded is None:
        return f"{group}: {name!r} was never recorded. {AGAIN}"
    old, new = lines(recorded), lines(observed)
    if old == new:
        return ""
    diff = difflib.unified_diff(old, new, "recorded", "observed", n=0, lineterm="")
    shown = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return "\n".join([f"{group}: {name!r} differs (- recorded, + observed)", *shown, AGAIN])


def lines(value: object, path: str = "") -> list[str]:
    if isinstance(value, dict) and value:
        return [one for key in value for one in lines(value[key], f"{path}.{key}")]
    if isinstance(value, list) and value:
        return [one for at, each in enumerate(value) for one in lines(each, f"{path}[{at}]")]
    return [f"{path.lstrip('.')} = {orjson.dumps(value).decode()}"]
