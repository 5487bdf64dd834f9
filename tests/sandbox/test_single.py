"""Tests of jobs in a process of their own."""

import json

import pytest

from mcphost.sandbox.single import JobLimits, JobStoppedError, NoProcessError, run_single
from tests.sandbox.processes import children_of, files_left, open_files, runs

JOBS = "tests.sandbox.single_jobs"
LIMITS = JobLimits(seconds=60, memory=512 << 20, result=1 << 20)
SHORT = JobLimits(seconds=3, memory=512 << 20, result=1 << 20)


def test_a_job_with_large_input_completes() -> None:
    job = bytes(range(256)) * 4096
    assert run_single(JOBS, job, LIMITS) == job[::-1]


@pytest.mark.parametrize(
    ("job", "limits", "said"),
    [
        (b"compute", SHORT, "it takes more than 3 seconds"),
        (b"memory", LIMITS, "it takes more than 512 MiB of memory"),
        (b"large", LIMITS, "its result has more than 1 MiB"),
        (b"die", LIMITS, "its process ended"),
    ],
)
def test_a_job_that_exceeds_its_limits_is_ended_with_the_reason(
    job: bytes, limits: JobLimits, said: str
) -> None:
    before = children_of()
    with pytest.raises(JobStoppedError) as caught:
        run_single(JOBS, job, limits)
    assert str(caught.value) == said
    assert [one for one in children_of() if one not in before] == []


def test_a_job_process_has_no_environment_and_a_memory_limit_and_exits() -> None:
    found = json.loads(run_single(JOBS, b"who", LIMITS))
    assert set(found["environment"]) <= {"LC_CTYPE"}
    assert found["memory"] == LIMITS.memory
    assert found["network"] is not True
    assert not runs(found["process"])


@pytest.mark.parametrize("left", [0, 5])
def test_a_process_that_cannot_be_started_leaves_no_files_or_processes_open(left: int) -> None:
    files, children = open_files(), children_of()
    with files_left(left), pytest.raises(NoProcessError, match="Too many open files"):
        run_single(JOBS, b"anything", LIMITS)
    assert open_files() == files
    assert children_of() == children
    assert run_single(JOBS, b"ab", LIMITS) == b"ba"
