"""Every suggestion of the editor exists in the sandbox."""

import pytest

from mcphost.kinds.script.completions import BUILTINS, MODULES
from mcphost.kinds.script.surroundings import stubs
from mcphost.sandbox.pool import Sandbox


def test_every_editor_suggestion_can_be_used_in_a_script(sandbox: Sandbox):
    imports = "".join(f"import {name}\n" for name in MODULES)
    names = "".join(f"{name}\n" for name in BUILTINS)
    source = f"{imports}{names}def f() -> None:\n    pass\n"
    assert sandbox.check("acme", source, stubs(waits=False)) == []


@pytest.mark.parametrize(
    ("word", "source"), [("del", "a = 1\ndel a"), ("yield", "def f():\n yield 1")]
)
def test_keywords_that_are_not_suggested_are_refused_by_the_sandbox(sandbox, word, source):
    (found,) = sandbox.check("acme", source, "")
    assert word in found["message"]
