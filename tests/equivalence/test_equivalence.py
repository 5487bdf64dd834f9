"""Each scenario leaves the transcript that was recorded."""

import pytest

from tests.equivalence import interruptions, requests, sessions, tools, transcripts
from tests.equivalence.run import Run, Scenario, observe

GROUPS = {
    "interruptions": interruptions.SCENARIOS,
    "requests": requests.SCENARIOS,
    "sessions": sessions.SCENARIOS,
    "tools": tools.SCENARIOS,
}
EVERY = [(group, scenario) for group, every in GROUPS.items() for scenario in every]
IDS = [f"{group}: {scenario.name}" for group, scenario in EVERY]


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize(("group", "scenario"), EVERY, ids=IDS)
async def test_each_scenario_reproduces_its_recorded_transcript(
    run: Run, group: str, scenario: Scenario
) -> None:
    observed = await observe(scenario, run)
    if transcripts.recording():
        known = [one.name for one in GROUPS[group]]
        transcripts.record(group, scenario.name, observed, known)
        return
    difference = transcripts.compare(group, scenario.name, observed)
    if difference:
        pytest.fail(difference, pytrace=False)


@pytest.mark.parametrize("group", GROUPS)
def test_each_recorded_transcript_has_a_scenario(group: str) -> None:
    assert list(transcripts.load(group)) == sorted(one.name for one in GROUPS[group])


def test_scenario_names_are_unique() -> None:
    assert len(set(IDS)) == len(IDS)
