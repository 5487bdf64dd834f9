"""Samples become figures, a table, a page and a picture."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench import report
from bench.figures import Figure, summarise
from bench.load import LoadError, Sample, parse
from bench.pages import write
from bench.proc import (
    cpu_seconds,
    family_cpu_seconds,
    parse_ended_ticks,
    parse_parent,
    parse_ticks,
)

LABELS = {"mcphost": "mcphost", "sdk": "SDK", "bare": "bare"}


def sample(requests: int, p99: float = 2.0, errors: int = 0, cpu: float = 1.0) -> Sample:
    return Sample(requests, seconds=1.0, errors=errors, p50=1.0, p99=p99, cpu=cpu)


def drifting() -> tuple[Figure, ...]:
    """A machine that is half as fast in the second pass, and slower still in the third."""
    return summarise(
        LABELS,
        {
            "mcphost": [sample(1000), sample(500), sample(100)],
            "sdk": [sample(100, p99=9.0), sample(50, p99=9.0), sample(10, p99=9.0)],
            "bare": [sample(2000), sample(1000), sample(200)],
        },
    )


def test_ratios_are_computed_per_pass_despite_machine_drift() -> None:
    ours = drifting()[0]
    assert ours.ratios == {"mcphost": 1.0, "sdk": 10.0, "bare": 0.5}
    assert (ours.rate, ours.low, ours.high) == (500, 100, 1000)
    (sdk,) = summarise(LABELS, {"sdk": [sample(1, errors=2), sample(1, errors=3)]})
    assert sdk.errors == 5, "those of every pass"


def test_cpu_per_call_is_compared_per_pass_and_shown_per_connection_count() -> None:
    ours = [sample(1000, cpu=0.3), sample(500, cpu=0.3)]
    bare = [sample(2000, cpu=0.2), sample(1000, cpu=0.2)]
    figures = summarise(LABELS, {"mcphost": ours, "bare": bare})
    assert figures[0].cpu_ratios["bare"] == pytest.approx(3.0)
    assert figures[0].cpu == pytest.approx(0.00045)
    table = report.profile_table({1: figures, 64: figures}).splitlines()
    assert table[2].split() == ["64", "450.0", "µs", "750", "150.0", "µs", "1,500", "3.00"]


def test_cpu_after_the_load_is_counted_and_has_a_target() -> None:
    ours = replace(sample(1000, cpu=0.3), cpu_afterwards=0.1)
    figures = summarise(
        LABELS, {"mcphost": [ours], "sdk": [sample(100)], "bare": [sample(1000, cpu=0.04)]}
    )
    assert figures[0].whole_cpu == pytest.approx(0.0004)
    assert figures[0].whole_cpu_ratios["bare"] == pytest.approx(10)
    assert "| 300 µs | 7.50 | 400 µs | 10.00 |" in report.tables({64: figures})
    verdict = report.verdict({64: figures})
    assert "10.00 times with the work after the load (wanted: at most 9.2): **missed**" in verdict


def test_the_overview_has_a_row_per_server_and_a_column_per_connection_count() -> None:
    ours = replace(sample(1000, cpu=0.3), cpu_afterwards=0.1)
    figures = summarise(LABELS, {"mcphost": [ours], "bare": [sample(2000, cpu=0.04)]})
    rows = report.overview({1: figures, 16: figures}).splitlines()
    assert rows[0] == "| server | 1 connection | 16 connections |"
    assert rows[2].endswith("| 400 µs, 1,000/s | 400 µs, 1,000/s |")
    assert len(rows) == 4


def test_a_missed_target_is_reported_as_missed() -> None:
    slow = summarise(
        LABELS,
        {"mcphost": [sample(10)], "sdk": [sample(10)], "bare": [sample(31)]},
    )
    assert report.verdict({16: slow, 64: slow}).splitlines() == [
        "- 16 connections: 3.10 times the bare app's CPU per call (wanted: at most 3): **missed**",
        "- 16 connections: 1.00 times the tuned SDK's throughput (wanted: at least 3): **missed**",
        "- 64 connections: 3.10 times the bare app's CPU per call (wanted: at most 2.2): **missed**",
        "- 64 connections: 3.10 times with the work after the load (wanted: at most 9.2): reached",
        "- 64 connections: 1.00 times the tuned SDK's throughput (wanted: at least 5): **missed**",
    ]


def test_only_text_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n")
    write("x", "new", page)
    written = "before\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nafter\n"
    assert page.read_text() == written
    with pytest.raises(ValueError, match="no place"):
        write("y", "new", page)
    assert page.read_text() == written


def test_the_page_has_markers_for_every_scenario() -> None:
    text = report.PAGE.read_text()
    names = "call ask kinds sessions scale nodes listeners waiting tasks"
    for name in names.split():
        for edge in ("begin", "end"):
            assert text.count(f"<!-- bench {name}: {edge} -->") == 1


def test_the_output_of_wrk_is_parsed_into_milliseconds() -> None:
    said = (
        'Running\nbench {"requests":10,"microseconds":2000000,"errors":1,"p50":1500,"p99":9000}\n'
    )
    assert parse(said, "") == Sample(10, 2.0, 1, 1.5, 9.0)
    with pytest.raises(LoadError, match="unable to connect"):
        parse("", "unable to connect to 127.0.0.1:1")


def test_cpu_ticks_are_parsed_after_a_process_name_with_spaces_and_parentheses() -> None:
    stat = "42 (a ) b (c) S " + " ".join(map(str, range(1, 50)))
    assert parse_ticks(stat) == 11 + 12
    assert parse_ended_ticks(stat) == 13 + 14
    assert parse_parent(stat) == 1


def test_the_cpu_of_a_process_tree_includes_running_and_ended_children() -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass\n"
    waits = f"{busy}print(flush=True)\ninput()"
    ended = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {busy!r}])\n"
    parent = f"{ended}subprocess.run([sys.executable, '-c', {waits!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        assert family_cpu_seconds(process.pid) >= cpu_seconds(process.pid) + 0.3
        process.communicate(b"\n")
