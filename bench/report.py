"""The figures as a table, on the terminal and in `docs/benchmarks.md`."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.asking import SealingFigure, claim_seconds
from bench.figures import Figure
from bench.listeners import ListenersFigure
from bench.load import CONNECTIONS
from bench.nodes import TWICE, NodesFigure
from bench.passes import Plan
from bench.processes import ROOT
from bench.waiting import WaitingFigure

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
IMAGE = f"![Requests per second of each server]({PICTURE.name})"
TARGET_OVER_SDK = 5.0
TARGET_ASKING = 5.0
TARGET_OF_BARE = 0.4
TARGET_NODES = 1.2
TARGET_TOLD = 2.0
TARGET_QUESTION = 30 * 1024
TARGET_LATENCY = 1.5


def table(figures: Sequence[Figure]) -> str:
    """The peers beside one another, as Markdown."""
    lines = [
        "| server | requests/s | lowest to highest pass | times the SDK | of the bare app | p50 ms | p99 ms | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for figure in figures:
        sdk, bare = figure.ratios.get("sdk"), figure.ratios.get("bare")
        cells = [
            figure.label,
            f"{figure.rate:,.0f}",
            f"{figure.low:,.0f} to {figure.high:,.0f}",
            "" if sdk is None else f"{sdk:.2f}",
            "" if bare is None else f"{bare:.0%}",
            f"{figure.p50:.2f}",
            f"{figure.p99:.2f}",
            str(figure.errors),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def scale_table(figures: Sequence[Figure]) -> str:
    """The same server over a small and a large database, as Markdown."""
    small = figures[0].name
    lines = [
        "| database | requests/s | lowest to highest pass | of the small one | p50 ms | p99 ms | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.label} | {figure.rate:,.0f} | {figure.low:,.0f} to {figure.high:,.0f} "
        f"| {figure.ratios[small]:.0%} | {figure.p50:.2f} | {figure.p99:.2f} | {figure.errors} |"
        for figure in figures
    ]
    return "\n".join(lines)


def nodes_table(figures: Sequence[NodesFigure]) -> str:
    """One and two processes beside one another, as Markdown."""
    lines = [
        "| processes | connections to each | requests/s in all | CPU per call | of one process's | errors |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.load.nodes} | {figure.load.connections} | {figure.rate:,.0f} "
        f"| {figure.cpu * 1e6:,.0f} µs | {figure.ratio:.2f} | {figure.errors} |"
        for figure in figures
    ]
    ratio = next(figure.ratio for figure in figures if figure.load == TWICE)
    seen = f"{ratio:.2f} times the CPU per call where each process has the load of the one"
    return "\n".join([*lines, "", _line(ratio <= TARGET_NODES, seen, "at most 1.2")])


def listeners_table(figure: ListenersFigure) -> str:
    """What many listeners cost, as Markdown."""
    lines = [
        "| listeners | changes | first told after | all told after | at worst | memory per listener |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        (
            f"| {figure.listeners:,} | {figure.changes} | {figure.first:.2f} s | {figure.last:.2f} s "
            f"| {figure.worst:.2f} s | {figure.memory / 1024:.1f} KiB |"
        ),
    ]
    told = f"all told after {figure.worst:.2f} s at worst"
    verdict = _line(figure.worst <= TARGET_TOLD, told, "two seconds")
    return "\n".join([*lines, "", verdict])


def waiting_table(figure: WaitingFigure) -> str:
    """What questions that wait for people cost, as Markdown."""
    lines = [
        "| questions waiting | memory for each | one core, while nothing happens | all asked after | all answered after |",
        "| ---: | ---: | ---: | ---: | ---: |",
        (
            f"| {figure.questions:,} | {figure.memory / 1024:.1f} KiB | {figure.idle:.1%} "
            f"| {figure.asking:.1f} s | {figure.answered:.1f} s |"
        ),
        "",
        "| new calls | requests/s | p99 ms |",
        "| --- | ---: | ---: |",
        f"| with nobody waiting | {figure.rate_alone:,.0f} | {figure.alone:.2f} |",
        f"| beside {figure.questions:,} who wait | {figure.rate_beside:,.0f} | {figure.beside:.2f} |",
    ]
    small = figure.memory <= TARGET_QUESTION
    memory = _line(small, f"{figure.memory / 1024:.1f} KiB for each", "at most 30 KiB")
    times = figure.beside / figure.alone
    latency = _line(times <= TARGET_LATENCY, f"p99 {times:.2f} times as high", "at most 1.5")
    return "\n".join([*lines, "", memory, latency])


def asking_table(figures: Sequence[Figure], sealed: Sequence[SealingFigure]) -> str:
    """Calls of two legs beside one another, what a token costs, and the verdict, as Markdown."""
    lines = [
        "| server | calls/s | lowest to highest pass | times the SDK | p50 ms per leg | p99 ms per leg | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for figure in figures:
        sdk = figure.ratios.get("sdk")
        lines.append(
            f"| {figure.label} | {figure.rate:,.0f} | {figure.low:,.0f} to {figure.high:,.0f} "
            f"| {'' if sdk is None else f'{sdk:.2f}'} | {figure.p50:.2f} | {figure.p99:.2f} "
            f"| {figure.errors} |"
        )
    return "\n".join([*lines, "", *_sealing_table(sealed), "", *_asking_verdict(figures)])


def _sealing_table(sealed: Sequence[SealingFigure]) -> list[str]:
    lines = [
        "| what is sealed | the token | sealing | opening |",
        "| ---: | ---: | ---: | ---: |",
    ]
    return lines + [
        f"| {each.payload:,} bytes | {each.token:,} characters "
        f"| {each.seal * 1e6:.0f} µs | {each.unseal * 1e6:.0f} µs |"
        for each in sealed
    ]


def _asking_verdict(figures: Sequence[Figure]) -> list[str]:
    lines = []
    claim = claim_seconds(figures)
    if claim is not None:
        lines.append(f"- a claim adds {claim * 1e6:.0f} µs to a call")
    ratio = {figure.name: figure.ratios for figure in figures}.get("mcphost", {}).get("sdk")
    if ratio is not None:
        seen = f"{ratio:.1f} times the SDK's throughput"
        lines.append(_line(ratio >= TARGET_ASKING, seen, "at least 5"))
    return lines


def verdict(figures: Sequence[Figure]) -> str:
    """Each target that was set, and whether this run reached it. Empty if a peer is missing."""
    rows = {figure.name: figure for figure in figures}
    if not {"mcphost", "sdk", "bare"} <= rows.keys():
        return ""
    ours, sdk = rows["mcphost"], rows["sdk"]
    over_sdk, of_bare = ours.ratios["sdk"], ours.ratios["bare"]
    lines = [
        _line(
            over_sdk >= TARGET_OVER_SDK, f"{over_sdk:.1f} times the SDK's throughput", "at least 5"
        ),
        _line(of_bare >= TARGET_OF_BARE, f"{of_bare:.0%} of the bare app's", "at least 40 %"),
        _line(
            ours.p99 <= sdk.p99, f"p99 of {ours.p99:.1f} ms", f"at most the SDK's {sdk.p99:.1f} ms"
        ),
    ]
    return "\n".join(lines)


def _line(reached: bool, seen: str, wanted: str) -> str:
    return f"- {seen} (wanted: {wanted}): {'reached' if reached else '**missed**'}"


def conditions(machine: Mapping[str, str], plan: Plan) -> str:
    """Where, when and how it was measured, as Markdown."""
    lines = [f"- {name}: {fact}" for name, fact in machine.items()]
    day = time.strftime("%Y-%m-%d", time.gmtime())
    how = (
        f"Measured on {day}: {plan.passes} passes of {plan.seconds} s per server, in turn, "
        f"after {plan.warm_up} s of warm-up; wrk with {CONNECTIONS} connections."
    )
    return "\n".join([how, "", *lines])


def write(marker: str, text: str, page: Path = PAGE) -> None:
    """Put `text` between the page's markers of that name; everything else stays as it is."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no place for {marker!r}: {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
