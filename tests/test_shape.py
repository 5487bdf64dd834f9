"""Tests of code conventions that no linter checks. Failures name file and line."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import models

from tests.source_files import ROOT, containing, parse, sources

LONGEST_FILE = 600
ASYNC_SAFE = "transaction=True"
# Fixtures that open the test's database; an `async def` with one needs the isolating marker.
DATABASE_FIXTURES = frozenset({"db", "cast", "elsewhere"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def at(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def layers() -> dict[str, int]:
    """Return each package's height, by name: the first layer of the contract is the highest."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (c for c in config["tool"]["importlinter"]["contracts"] if c["id"] == "layers")
    rows = [row.replace("|", " ").replace(":", " ").split() for row in contract["layers"]]
    return {
        package.strip("()"): len(rows) - height
        for height, row in enumerate(rows)
        for package in row
    }


def test_the_length_of_source_files_is_limited():
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sources("mcphost", "tools", "bootstrap")
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_no_function_contains_an_import():
    hidden = [
        at(path, node)
        for path in containing(r"^[ \t]+(import|from)\b", "mcphost", "tools", "bootstrap", "tests")
        for function in ast.walk(parse(path))
        if isinstance(function, Function)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert hidden == []


# Authors import everything from this one module, whatever files it is defined in.
FRONT = ROOT / "mcphost" / "sdk" / "__init__.py"


def test_the_front_module_of_the_sdk_only_re_exports():
    body = parse(FRONT).body
    assert {type(node) for node in body} == {ast.Expr, ast.ImportFrom, ast.Assign}
    assert [ast.unparse(n.targets[0]) for n in body if isinstance(n, ast.Assign)] == ["__all__"]


def test_the_init_module_of_a_top_level_package_is_only_a_docstring():
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "mcphost").glob("*/__init__.py"))
        if path != FRONT
        if not ast.get_docstring(tree := parse(path)) or len(tree.body) != 1
    ]
    assert wrong == []


def test_the_init_modules_of_nested_packages_contain_at_most_a_docstring():
    version = ROOT / "mcphost" / "__init__.py"
    wrong = [
        str(path.relative_to(ROOT))
        for path in sources("mcphost")
        if path.name == "__init__.py"
        and path not in (FRONT, version)
        and any(not isinstance(node, ast.Expr) for node in parse(path).body)
    ]
    assert wrong == []


def test_class_names_are_unique():
    files: dict[str, set[Path]] = {}
    for path in sources("mcphost"):
        if "management" not in path.parts:
            for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
                files.setdefault(name, set()).add(path)
    several = {name: paths for name, paths in files.items() if len(paths) > 1}
    places = {  # without those in texts
        name: [
            at(path, node)
            for path in sorted(paths)
            for node in parse(path).body
            if isinstance(node, ast.ClassDef) and node.name == name
        ]
        for name, paths in several.items()
    }
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_admin_classes_are_in_the_console_package():
    assert list((ROOT / "mcphost").glob("*/admin.py")) == []


def test_addresses_of_this_server_are_made_in_one_place() -> None:
    """The sender of a request chooses its Host: `public_url` decides when that counts."""
    makers = [path for path in sources("mcphost") if "build_absolute_uri(" in path.read_text()]
    assert makers == [ROOT / "mcphost/identity/oauth/addresses.py"]


def test_tools_import_nothing_from_the_server_except_the_sdk():
    wrong = [
        at(path, node)
        for path in sources("tools", "tests/conformance/tools")
        for node in ast.walk(parse(path))
        for name in imported(node)
        if name.split(".")[0] == "mcphost" and name.split(".")[:2] != ["mcphost", "sdk"]
    ]
    assert wrong == []


def imported(node: ast.AST) -> list[str]:
    """Return the modules (or names in packages) that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


STATEFUL = frozenset(
    [
        "BoundedSemaphore",
        "Counter",
        "OrderedDict",
        "Random",
        "ThreadPoolExecutor",
        "WeakSet",
        "count",
        "defaultdict",
        "deque",
        "local",
    ]
)
"""Classes of Python's library whose instances change."""
STATES: Mapping[str, int] = {
    "audit": 4,
    "calls": 1,
    "catalogue": 2,
    "console": 1,
    "feed": 2,
    "identity": 3,
    "kinds": 2,
    "observability": 5,
    "protocol": 1,
    "routing.py": 1,
    "serving": 31,
    "tenants": 2,
    "transport": 5,
    "vault": 3,
}
"""How many names of modules hold something that changes while the process runs, by package. What a process
holds belongs into an object that `ServerProcess` makes and hands down, so these numbers only shrink."""


def test_the_amount_of_mutable_module_state_does_not_grow():
    assert Counter(path.parts[1] for path, _ in _states()) == STATES


def _states() -> Iterator[tuple[Path, str]]:
    """Yield each name at the top of a module that is bound again by a function, to an empty container, or to
    an instance of a class that is not frozen."""
    changing = STATEFUL | {
        node.name
        for path in sources("mcphost")
        for node in parse(path).body
        if isinstance(node, ast.ClassDef) and not _is_frozen(node)
    }
    for path in sources("mcphost"):
        tree = parse(path)
        bound = {n for node in ast.walk(tree) if isinstance(node, ast.Global) for n in node.names}
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                (target,) = node.targets if isinstance(node, ast.Assign) else [node.target]
                name = ast.unparse(target)
                if name in bound or _changes(node.value, changing):
                    yield path.relative_to(ROOT), name


def _changes(value: ast.expr, changing: Collection[str]) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in changing
    return ast.unparse(value) in ("[]", "{}", "set()")


def _is_frozen(node: ast.ClassDef) -> bool:
    """Whether instances stay as they are made: named tuples, enumerations, frozen data classes; or classes
    that set nothing of themselves after they were made."""
    said = " ".join(map(ast.unparse, [*node.bases, *node.decorator_list]))
    if re.search(r"NamedTuple|Enum|frozen=True|Protocol|Exception|Error", said):
        return True
    if STATEFUL & set(re.findall(r"\w+", said)):
        return False
    return not any(
        isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == "self"
        for part in ast.walk(node)
    )


MAX_ONE_CALLER = 19.2
"""Percent of the product's functions that are private and have one caller. Lower it when there are fewer."""


def test_the_share_of_private_functions_with_one_caller_does_not_grow() -> None:
    """The measure: of all functions and methods of `mcphost/` without migrations, also nested ones, the share
    of those whose name begins with one underscore and is mentioned exactly once in its module besides its
    definition, not in its own body. A mention is a name that is read, or an attribute: so a function that is
    passed on as a value counts, too.

    One with less than six lines is written where it is called, unless its name states a rule."""
    functions = alone = 0
    for path in sources("mcphost"):
        tree = parse(path)
        mentions = Counter(_mentions(tree))
        for node in ast.walk(tree):
            if isinstance(node, Function):
                functions += 1
                private = node.name.startswith("_") and not node.name.startswith("__")
                once = private and mentions[node.name] == 1
                alone += once and node.name not in _mentions(node)
    share = 100 * alone / functions
    assert MAX_ONE_CALLER - 0.3 <= share <= MAX_ONE_CALLER, f"{alone} of {functions}: {share:.2f} %"


def _mentions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_every_kind_is_in_the_independence_contract():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = {c["id"]: c for c in config["tool"]["importlinter"]["contracts"]}
    folders = {path.parent.name for path in (ROOT / "mcphost" / "kinds").glob("*/kind.py")}
    assert {f"mcphost.kinds.{name}" for name in folders} == set(contracts["kinds"]["modules"])


def our_models() -> list[type[models.Model]]:
    return [model for model in apps.get_models() if model.__module__.startswith("mcphost.")]


def room_of(model: type[models.Model]) -> str:
    return model.__module__.split(".")[1]


def test_every_model_declares_an_ordering():
    assert our_models()
    assert [model.__name__ for model in our_models() if not model._meta.ordering] == []


def test_every_table_name_begins_with_its_package():
    wrong = [
        f"{model.__name__}: {model._meta.db_table}"
        for model in our_models()
        if not model._meta.db_table.startswith(f"{room_of(model)}_")
    ]
    assert wrong == []


def test_foreign_keys_point_only_to_lower_packages():
    height = layers()
    wrong = [
        f"{room_of(model)}.{model.__name__}.{field} -> {room_of(target)}"
        for model in our_models()
        for field, target in relations(model)
        if target.__module__.startswith("mcphost.")
        and room_of(target) != room_of(model)
        and height[room_of(target)] >= height[room_of(model)]
    ]
    assert wrong == []


def test_audit_models_have_no_relations():
    assert [
        f"{model.__name__}.{field}"
        for model in our_models()
        if room_of(model) == "audit"
        for field, _ in relations(model)
    ] == []


def relations(model: type[models.Model]) -> Iterator[tuple[str, type[models.Model]]]:
    """Yield the names of a model's fields that refer to another model, and that model."""
    for field in (*model._meta.local_fields, *model._meta.local_many_to_many):
        if isinstance(field.related_model, type):
            yield field.name, field.related_model


@pytest.mark.django_db
def test_the_migrations_are_up_to_date_with_the_models():
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)


def test_async_tests_with_the_database_isolate_their_rows():
    """The plain marker does not isolate: rows of another thread leak into later tests."""
    leaky = [
        at(path, function)
        for path in containing(r"^ *async def test", "tests")
        for function, marks in marked_tests(parse(path))
        if isinstance(function, ast.AsyncFunctionDef)
        and touches_the_database(function, marks)
        and not any("django_db" in mark and ASYNC_SAFE in mark for mark in marks)
    ]
    assert leaky == []


def touches_the_database(function: Function, marks: list[str]) -> bool:
    names = {argument.arg for argument in function.args.args}
    return any("django_db" in mark for mark in marks) or bool(names & DATABASE_FIXTURES)


def marked_tests(tree: ast.Module) -> Iterator[tuple[Function, list[str]]]:
    """Yield every test function with the marks on it, its class and its module, as source."""
    module = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == ["pytestmark"]
    ]
    yield from _tests_in(tree.body, module)


def _tests_in(body: list[ast.stmt], marks: list[str]) -> Iterator[tuple[Function, list[str]]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _tests_in(node.body, [*marks, *map(ast.unparse, node.decorator_list)])
        elif isinstance(node, Function) and node.name.startswith("test"):
            yield node, [*marks, *map(ast.unparse, node.decorator_list)]
