"""Tests of what an editor suggests: all of it exists in the sandbox."""

import builtins
import keyword

import pytest

from mcphost.kinds.script.completions import BUILTINS, KEYWORDS, MODULES, offered
from mcphost.kinds.script.surroundings import DESCRIBED, LATER, NOW, stubs
from mcphost.sandbox.pool import Sandbox


def test_the_functions_are_those_that_scripts_have_each_with_its_signature_and_a_description():
    functions = {each["name"]: each for each in offered()["functions"]}
    assert set(functions) == {*LATER, *NOW} - {"_http"}
    assert all(each["about"] for each in functions.values())
    told = dict(DESCRIBED)
    assert functions["elicit"] == {
        "name": "elicit",
        "signature": "(key: str, message: str, fields: dict[str, Any]) -> dict[str, Any]",
        "about": told["elicit(key, message, fields)"],
    }
    assert "level: str = 'info'" in functions["log"]["signature"]


def test_requests_and_their_responses_have_members():
    members = offered()["members"]
    assert offered()["objects"] == ["http"]
    methods = {each["name"]: each for each in members["http"]}
    assert set(methods) == {"get", "post", "put", "patch", "delete", "head"}
    assert methods["post"]["about"] == "Send a POST request."
    assert methods["post"]["signature"].startswith("(url: str, *, params: ")
    response = {each["name"]: each["signature"] for each in members["Response"]}
    assert (response["status"], response["json"]) == ("int", "() -> Any")


def test_what_is_suggested_can_be_used_in_a_script(sandbox: Sandbox):
    imports = "".join(f"import {name}\n" for name in MODULES)
    names = "".join(f"{name}\n" for name in BUILTINS)
    source = f"{imports}{names}def f() -> None:\n    pass\n"
    assert sandbox.check("acme", source, stubs(waits=False)) == []


def test_names_and_keywords_are_those_of_python():
    assert set(BUILTINS) <= set(dir(builtins))
    assert set(KEYWORDS) <= {*keyword.kwlist, *keyword.softkwlist}
    assert set(keyword.kwlist) - set(KEYWORDS) == {"del", "yield"}


@pytest.mark.parametrize(
    ("word", "source"), [("del", "a = 1\ndel a"), ("yield", "def f():\n yield 1")]
)
def test_keywords_that_are_not_suggested_are_refused_by_the_sandbox(sandbox, word, source):
    (found,) = sandbox.check("acme", source, "")
    assert word in found["message"]
