"""The table of the matrix: what each client did, compared with what it is known to lack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.clients.versions import Client

MAX_PROBLEM: Final = 160
"""Characters of what went wrong that the table shows."""


@dataclass(frozen=True)
class Row:
    """A client's line of the table. `failed` has what went wrong and is not known to be lacking."""

    client: Client
    revision: str
    problems: Mapping[str, str]
    failed: Mapping[str, str]


def judge(client: Client, revision: str, problems: Mapping[str, str]) -> Row:
    """Compare what went wrong with what the client lacks.

    A lack is a failure, too, if the step passes after all, or if something else came of it.
    """
    lacks = {step: lack for lack in client.lacks for step in lack.steps}
    failed = {step: text for step, text in problems.items() if text and step not in lacks}
    for step, lack in lacks.items():
        if not problems[step]:
            failed[step] = "passes, but is listed as lacking"
        elif lack.symptom not in problems[step]:
            failed[step] = problems[step]
    return Row(client, revision, problems, failed)


def render(rows: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    head = ["| client | version | revision | passed | lacks |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *map(_line, rows)])


def _line(row: Row) -> str:
    passed, steps = list(row.problems.values()).count(""), len(row.problems)
    count = f"{passed} of {steps}" if passed < steps else "all"
    lacks = [
        f"{', '.join(lack.steps)}: {lack.reason}"
        for lack in row.client.lacks
        if not row.failed.keys() & lack.steps
    ]
    for text in dict.fromkeys(row.failed.values()):
        failed = [step for step, problem in row.failed.items() if problem == text]
        lacks.append(f"**failed** {', '.join(failed)}: {_escaped(text)}")
    cells = (row.client.title, row.client.version, row.revision, count, "; ".join(lacks))
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _escaped(text: str) -> str:
    return text[:MAX_PROBLEM].replace("|", "\\|").replace("<", "&lt;")
