"""Tests that docs/reference.md has a row for every setting, command, kind, action and metric."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.core.management import get_commands

from mcphost import home
from mcphost.catalogue.kinds import KINDS
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.observability import deployment
from mcphost.protocol.legacy.opening import INITIALIZE
from mcphost.serving import policy
from mcphost.serving.legacy.methods import OWN
from mcphost.serving.methods.dispatch import HANDLERS, LONG_LIVED
from mcphost.settings import Environment

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
# The functions that write records: the first argument names the action.
RECORDING = re.compile(r"\b_?(record\w*|member_changed|note)")
ACTION = re.compile(r"[a-z_]+\.[a-z_]+")
# The form of actions in constants, wherever these are defined.
PARTICIPLE = re.compile(r"""(["'])((?!mcphost\.)[a-z]+\.(?:[a-z_]+ed|set))\1""")


def rows(title: str) -> dict[str, str]:
    """Return the rows of the tables under a heading, by the code in their first cell."""
    level = re.search(rf"^(#+) {re.escape(title)}$", REFERENCE, re.MULTILINE)
    assert level, title
    rest = REFERENCE[level.end() :]
    end = re.search(rf"^#{{1,{len(level[1])}}} ", rest, re.MULTILINE)
    section = rest[: end.start()] if end else rest
    return {
        match[1]: match[0] for match in re.finditer(r"^\| `([^`]+)` \|.*$", section, re.MULTILINE)
    }


def strings(node: ast.AST) -> set[str]:
    return {
        n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def sources() -> list[str]:
    paths = sorted((ROOT / "mcphost").rglob("*.py"))
    return [path.read_text() for path in paths if "migrations" not in path.parts]


def first_arguments(function: re.Pattern[str]) -> Iterator[ast.expr]:
    """Yield the first argument of each call of a function. Only files that name one are parsed."""
    called, name = (re.compile(f"{function.pattern}{end}") for end in (r"\(", "$"))
    for node in (n for text in sources() if called.search(text) for n in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Call) and node.args and name.search(ast.unparse(node.func)):
            yield node.args[0]


def environment_variables() -> set[str]:
    """Return the fields of the settings, and the variables that home.py reads before them."""
    fields = {Environment.variable(name) for name in Environment.model_fields}
    early = strings(ast.parse(Path(home.__file__).read_text()))
    return fields | {name for name in early if re.fullmatch(r"MCPHOST_[A-Z_]+", name)}


def verbs() -> set[str]:
    """Return the verbs that exist for every primitive type."""
    tree = ast.parse((ROOT / "mcphost/catalogue/services.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    # The position of the verb among the arguments of the functions that record one.
    position = {"_record": 0, "_change_state": 2}
    return {
        verb
        for call in calls
        if (at := position.get(ast.unparse(call.func))) is not None
        for verb in strings(call.args[at])
    }


def actions() -> set[str]:
    found = {f"{sort.value}.{verb}" for sort in PrimitiveType for verb in verbs()}
    found |= {match[2] for text in sources() for match in PARTICIPLE.finditer(text)}
    for argument in first_arguments(RECORDING):
        found |= {text for text in strings(argument) if ACTION.fullmatch(text)}
    return found


def test_every_setting_has_a_row():
    assert set(rows("Settings")) == environment_variables()


def test_the_rows_contain_the_real_defaults():
    told = rows("Settings")
    for name, field in Environment.model_fields.items():
        if field.default not in ("", None):
            variable = Environment.variable(name)
            assert f"| `{field.default}` |" in told[variable], variable


def test_every_method_has_a_row_with_its_required_scope():
    told = rows("Methods")
    assert {name for name in told if "/" in name and "{" not in name} == {*HANDLERS, *LONG_LIVED}
    for name, row in told.items():
        if name.endswith("/list"):
            assert f"| `{policy.LIST}` |" in row, name
        elif name in HANDLERS and name != "server/discover":
            assert f"| `{policy.CALL}` |" in row, name


def test_every_method_of_sessions_only_has_a_row():
    assert {name for name in rows("Sessions") if name[0].islower()} == {*OWN, INITIALIZE}


def test_every_command_has_a_row():
    ours = {name for name, app in get_commands().items() if app.split(".")[0] == "mcphost"}
    assert set(rows("Commands")) == ours


def test_every_kind_has_a_row():
    assert set(rows("Kinds")) == set(KINDS)


def test_every_audit_action_has_a_row():
    assert set(rows("Audit actions")) == actions()


def test_every_health_probe_has_a_row():
    registered = [strings(name) for name in first_arguments(re.compile(r"\bhealth\.register"))]
    assert set(rows("Health")) == set().union(*registered)


def test_every_deployment_check_has_a_row():
    source = ast.parse(Path(deployment.__file__).read_text())
    ids = {text for text in strings(source) if re.fullmatch(r"mcphost\.[EW]\d+", text)}
    assert set(rows("Deployment checks")) == ids


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    told = set(re.findall(r"^([a-z0-9]+):.*## ", makefile, re.MULTILINE))
    assert told == set(phony.split()) - {"runtime", "dev"}
