"""What the matrix of clients says: of a client's lines, and in the table."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.clients import sign_ins, terminal
from tests.clients.scenario import LINES, STEPS, problem, run
from tests.clients.sign_in_versions import SIGN_INS
from tests.clients.table import judge, render
from tests.clients.versions import CLIENTS, Client, Lack
from tests.e2e.processes import ROOT

LACKING = Client(
    "It", "1.0", "it.py", lacks=(Lack(("question", "log"), "has no person", "nobody"),)
)
ALL_PASS = dict.fromkeys(STEPS, "")


def test_a_client_that_does_everything_has_all_steps_and_lacks_nothing():
    row = judge(Client("`it`", "1.0", "it.py"), "2026-07-28", ALL_PASS)
    assert not row.failed
    assert render([row]).splitlines()[-1] == "| `it` | 1.0 | 2026-07-28 | all | |"


def test_a_known_lack_is_in_the_table_with_its_reason_and_is_no_failure():
    row = judge(LACKING, "2025-11-25", {**ALL_PASS, "question": "nobody is there", "log": "nobody"})
    assert not row.failed
    line = render([row]).splitlines()[-1]
    assert line == "| It | 1.0 | 2025-11-25 | 9 of 11 | question, log: has no person |"


def test_a_lack_that_passes_or_shows_another_symptom_is_a_failure():
    row = judge(LACKING, "2025-11-25", {**ALL_PASS, "question": "500 <b>a|b</b>"})
    assert set(row.failed) == {"question", "log"}
    line = render([row]).splitlines()[-1]
    assert "**failed** question: 500 &lt;b>a\\|b&lt;/b>" in line
    assert "**failed** log: passes, but is listed as lacking" in line
    assert "has no person" not in line


def test_a_problem_at_a_step_that_is_not_lacking_is_a_failure():
    row = judge(Client("It", "1", "it.py"), "", {**ALL_PASS, "list": "gone", "call": "gone"})
    assert render([row]).splitlines()[-1] == "| It | 1 | | 9 of 11 | **failed** list, call: gone |"


def test_each_step_accepts_its_text_only_and_an_error_only_where_one_has_to_come():
    for step, _, text in LINES:
        is_error = step == "error"
        result = {"content": [{"text": f"a {text}"}], "isError": is_error}
        assert problem(step, {"done": result}, text) == ""
        assert problem(step, {"done": {**result, "isError": not is_error}}, text)
        assert problem(step, {"done": {"content": [], "isError": is_error}}, text)
        assert bool(problem(step, {"raised": f"ToolError: {text}"}, text)) is not is_error


@pytest.mark.parametrize(("clients", "all_steps"), [(CLIENTS, STEPS), (SIGN_INS, sign_ins.STEPS)])
def test_every_client_lacks_only_steps_that_exist(
    clients: Mapping[str, Client], all_steps: Sequence[str]
):
    for name, client in clients.items():
        steps = [step for lack in client.lacks for step in lack.steps]
        assert set(steps) <= set(all_steps), name
        assert len(steps) == len(set(steps)), name
        assert all(lack.symptom for lack in client.lacks), name
        packages = " ".join((*client.python, *client.node))
        assert client.version in packages, name


DIES = """
import json, sys
assert json.loads(sys.stdin.readline())["url"].startswith("http://127.0.0.1:1/t")
print(json.dumps({"met": {"tools": ["add"]}}), flush=True)
sys.stdin.readline()
print(json.dumps({"heard": "a change"}), flush=True)
print(json.dumps({"asked": {}}), flush=True)
answer = json.loads(sys.stdin.readline())
print(json.dumps({"done": {"content": [{"text": answer["action"]}]}}), flush=True)
sys.exit("the end: it is gone")
"""


def test_a_client_that_ends_early_keeps_what_it_did_and_fails_at_the_steps_that_are_left(
    tmp_path: Path,
):
    url = "http://127.0.0.1:1/t/demo/mcp"
    problems = run([sys.executable, "-c", DIES], tmp_path, {"url": url, "token": "t"})
    assert problems["connect"] == problems["slash"] == ""
    assert problems["list"].startswith("missing: arrange_meeting")
    assert "accept" in problems["call"]
    assert {problems[step] for step in ("question", "log", "close")} == {"the end: it is gone"}


@pytest.mark.parametrize(
    ("marker", "clients"), [("client matrix", CLIENTS), ("sign-in matrix", SIGN_INS)]
)
def test_the_documentation_has_a_row_without_a_failure_for_each_client(
    marker: str, clients: Mapping[str, Client]
):
    page = (ROOT / "docs" / "clients.md").read_text()
    table = page.partition(f"<!-- {marker}: begin -->")[2].partition("<!--")[0]
    rows = table.strip().splitlines()[2:]
    heads = [row.split(" | ")[:2] for row in rows]
    assert heads == [[f"| {client.title}", client.version] for client in clients.values()]
    assert "**failed**" not in table


def test_a_person_types_what_a_terminal_asks_for(tmp_path: Path) -> None:
    program = "print(input('Name? ')[::-1]); input()"
    command = [sys.executable, "-c", program]
    terminal.converse(command, tmp_path, [("Name?", "lwo\n"), ("owl", "")])
    with pytest.raises(AssertionError, match="'owl' was not shown: it"):
        terminal.converse(
            [sys.executable, "-c", "print(input('Name? '))"],
            tmp_path,
            [("Name?", "it\n"), ("owl", "")],
        )
