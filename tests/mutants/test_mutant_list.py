"""The list of mutants stays true while the code changes."""

import ast
from collections import Counter

import pytest

from tests.mutants.mutant_list import ROOT, Mutant, mutants

MUTANTS = mutants()
LEAST = 200


def packages() -> set[str]:
    """Return the packages of the product that have code."""
    folders = (path for path in (ROOT / "mcphost").iterdir() if (path / "__init__.py").exists())
    return {path.name for path in folders if any(path.rglob("[!_]*.py"))}


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_each_package_has_mutants():
    assert packages() <= {mutant.package for mutant in MUTANTS}
    assert len(MUTANTS) >= LEAST


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_line_of_its_package(mutant: Mutant):
    source = (ROOT / mutant.file).read_text()
    mutated = mutant.mutated(source)
    compile(mutated, mutant.file, "exec")
    assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(source))
    assert mutant.file.removesuffix(".py").split("/")[:2] == ["mcphost", mutant.package]
    assert "\n" not in mutant.old + mutant.new


def test_the_tests_of_all_mutants_exist():
    assert all(mutant.tests for mutant in MUTANTS)
    named = {test for mutant in MUTANTS for test in mutant.tests}
    missing = [
        test
        for path, _, node in (test.partition("::") for test in sorted(named))
        if not (ROOT / path).exists() or (node and node not in functions(path))
        for test in [f"{path}::{node}"]
    ]
    assert missing == []


def test_no_two_mutants_are_the_same():
    changes = Counter((mutant.file, mutant.old, mutant.new) for mutant in MUTANTS)
    assert [change for change, count in changes.items() if count > 1] == []
