import pytest

from tests.conformance import suite, verdict
from tests.conformance.verdict import Check, Expected, complaints

GOOD = Check("wire-schema-valid", "SUCCESS")
EXPECTED = Expected(
    passing={"tools-list": 2, "caching": 1},
    scenarios=frozenset({"prompts-list"}),
    checks=frozenset({("caching", "prompts-hints")}),
)
RESULTS = {
    "tools-list": (GOOD, Check("order", "SUCCESS"), Check("note", "INFO")),
    "caching": (GOOD, Check("prompts-hints", "FAILURE", "no prompts")),
    "prompts-list": (Check("prompts", "FAILURE", "no"),),
}


SKIPPED = Check("x", "SKIPPED")
LATE = "it passes now; give it a row in expected.json"
STALE = "prompts-hints does not fail; take it out of expected-failures.yaml"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, None),
        ({"prompts-list": (GOOD,)}, f"prompts-list: {LATE}"),
        ({"caching": (GOOD,)}, f"caching: {STALE}"),
        ({"new": (GOOD,)}, "new: unknown; 1 checks pass"),
        ({"tools-list": (GOOD, SKIPPED)}, "tools-list: 1 checks pass, not 2"),
        *(
            ({"tools-list": (GOOD, GOOD, Check("a", bad, "why"))}, f"tools-list: {bad} a: why")
            for bad in ("FAILURE", "WARNING")
        ),
    ],
)
def test_results_that_differ_from_the_expectation_are_reported(changed, complaint):
    assert complaints(RESULTS | changed, EXPECTED) == ([complaint] if complaint else [])


def test_a_scenario_that_did_not_run_or_was_only_skipped_counts_as_zero_passing_checks():
    fewer = {name: checks for name, checks in RESULTS.items() if name != "tools-list"}
    assert complaints(fewer, EXPECTED) == ["tools-list: it did not run"]
    expected = Expected(passing={"silent": 0}, scenarios=frozenset(), checks=frozenset())
    assert complaints({"silent": (SKIPPED,)}, expected) == []
    assert complaints({"silent": (GOOD,)}, expected) == ["silent: 1 checks pass, not 0"]


@pytest.mark.parametrize("kind", ["server", "authorization-server"])
def test_checks_of_servers_and_authorization_servers_are_read(kind, tmp_path):
    for scenario in ("tools-list", "authorization-server-metadata-endpoint"):
        folder = tmp_path / f"{kind}-{scenario}-2026-11-28T18-39-14-088Z"
        folder.mkdir()
        (folder / "checks.json").write_text('[{"id": "order", "status": "SUCCESS"}]')
    (tmp_path / "client-initialize-2026-11-28T18-39-14-088Z").mkdir()
    read = (Check("order", "SUCCESS"),)
    assert verdict.read_results(tmp_path) == {
        "tools-list": read,
        "authorization-server-metadata-endpoint": read,
    }


@pytest.mark.parametrize(
    ("revision", "scenarios"), [("2026-07-28", 50), ("2025-11-25", 33), ("authorization", 2)]
)
def test_the_tables_of_a_revision_list_every_scenario_once(revision, scenarios):
    assert revision in (*suite.REVISIONS, suite.AUTHORIZATION)
    expected = verdict.read_expected(suite.tables(revision))
    assert len(expected.passing) + len(expected.scenarios) == scenarios
    assert {scenario for scenario, _ in expected.checks} <= expected.passing.keys()
