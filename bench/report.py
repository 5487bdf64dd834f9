"""The figures as a table, on the terminal and in `docs/benchmarks.md`."""

import time
from collections.abc import Mapping, Sequence
from statistics import median

from bench.asking import SealingFigure, claim_seconds
from bench.console import ALONE, PageFigure, RecordFigure, SocketsFigure
from bench.figures import Figure
from bench.kinds import ECHO, SCRIPT
from bench.listeners import ListenersFigure
from bench.nodes import TWICE, NodesFigure
from bench.passes import Plan
from bench.peers import SDK
from bench.processes import ROOT
from bench.sessions import SESSION_BASED, STATELESS, SessionsFigure
from bench.tasks import TasksFigure
from bench.verify import REVISION
from bench.waiting import SetUpFigure, WaitingFigure

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
IMAGE = f"![CPU per call of each server]({PICTURE.name})"
# Per number of connections, of our server on SQLite.
TARGETS_CPU = {16: 3.0, 64: 2.2}
TARGETS_WHOLE_CPU = {64: 9.2}
TARGETS_OVER_SDK = {16: 3.0, 64: 5.0}
TARGET_ASKING = 3.0
# Per revision, of the CPU of the SDK's server.
TARGETS_SESSIONS = {SESSION_BASED: 2.0, STATELESS: 1.5}
TARGET_NODES = 1.2
# Milliseconds at p50 above the echo as a Python function, over the fewest connections.
TARGET_SCRIPT = 2.0
TARGET_NOTIFIED = 2.0
TARGET_QUESTION = 30 * 1024
TARGET_LATENCY = 1.5
TARGET_SESSION = 25 * 1024
TARGET_SET_UP = 300
# Seconds of a page of the console or a read of the API, at the server.
TARGET_PAGE = 0.3
# Of the CPU per call without them.
TARGET_SUMMARIES = 1.1
# Bytes of a process for each task that waits: nothing but what memory varies by.
TARGET_TASK = 512


def overview(figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """One row per server: its CPU per call, work afterwards included, and its calls a second."""
    counts = tuple(figures_by_count)
    lines = [
        f"| server | {' | '.join(_connections(count) for count in counts)} |",
        f"| --- |{' ---: |' * len(counts)}",
    ]
    for rows in zip(*figures_by_count.values(), strict=True):
        cells = [f"{figure.whole_cpu * 1e6:,.0f} µs, {figure.rate:,.0f}/s" for figure in rows]
        lines.append(f"| {rows[0].label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def tables(figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """The peers beside one another, a table per number of connections, as Markdown."""
    parts = [
        f"### {_connections(count)}\n\n{_table(figures)}"
        for count, figures in figures_by_count.items()
    ]
    return "\n\n".join(parts)


def _connections(count: int) -> str:
    return f"{count} connection{'' if count == 1 else 's'}"


def _table(figures: Sequence[Figure]) -> str:
    lines = [
        "| server | CPU per call | times the bare app's | with work afterwards | times the bare app's | requests/s | lowest to highest pass | times the tuned SDK's | p50 ms | p99 ms | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for figure in figures:
        cells = [
            figure.label,
            f"{figure.cpu * 1e6:,.0f} µs",
            _times(figure.cpu_ratios.get("bare")),
            f"{figure.whole_cpu * 1e6:,.0f} µs",
            _times(figure.whole_cpu_ratios.get("bare")),
            f"{figure.rate:,.0f}",
            f"{figure.low:,.0f} to {figure.high:,.0f}",
            _times(figure.ratios.get("sdk")),
            f"{figure.p50:.2f}",
            f"{figure.p99:.2f}",
            str(figure.errors),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def profile_table(figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """CPU per call and calls a second of our server and of the bare app, per number of connections."""
    head = ("connections", "mcphost CPU/call", "calls/s", "bare CPU/call", "calls/s", "CPU ratio")
    rows: list[tuple[str, ...]] = [head]
    for connections, (mcphost, bare) in figures_by_count.items():
        cells = (mcphost.cpu, mcphost.rate, bare.cpu, bare.rate)
        texts = [f"{cell:,.0f}" if cell > 1 else f"{cell * 1e6:,.1f} µs" for cell in cells]
        rows.append((str(connections), *texts, f"{mcphost.cpu_ratios[bare.name]:.2f}"))
    return "\n".join(
        "  ".join(f"{text:>{len(head[i])}}" for i, text in enumerate(row)) for row in rows
    )


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


def kinds_tables(figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """Tools of each kind beside the echo as a Python function, a table per number of connections, as
    Markdown."""
    parts = []
    for count, figures in figures_by_count.items():
        lines = [
            f"### In each kind, {_connections(count)}",
            "",
            "| tool | CPU per call | times the echo's | calls/s | lowest to highest pass | of the echo's | p50 ms per request | p99 ms per request | errors |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        lines += [
            f"| {figure.label} | {figure.cpu * 1e6:,.0f} µs | {figure.cpu_ratios[ECHO]:.2f} "
            f"| {figure.rate:,.0f} | {figure.low:,.0f} to {figure.high:,.0f} "
            f"| {figure.ratios[ECHO]:.0%} | {figure.p50:.2f} | {figure.p99:.2f} | {figure.errors} |"
            for figure in figures
        ]
        parts.append("\n".join(lines))
    rows = {figure.name: figure for figure in figures_by_count[min(figures_by_count)]}
    more = rows[SCRIPT].p50 - rows[ECHO].p50
    summary = (
        f"{_connections(min(figures_by_count))}: a script takes {more:.2f} ms more than the echo"
    )
    verdict = _line(more < TARGET_SCRIPT, summary, f"less than {TARGET_SCRIPT:g} ms")
    return "\n\n".join([*parts, verdict])


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
    summary = f"{ratio:.2f} times the CPU per call where each process has the load of the one"
    return "\n".join([*lines, "", _line(ratio <= TARGET_NODES, summary, "at most 1.2")])


def listeners_table(figure: ListenersFigure) -> str:
    """What many listeners cost, as Markdown."""
    lines = [
        "| listeners | changes | first client notified after | all notified after | all notified after, slowest change | memory per listener |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        (
            f"| {figure.listeners:,} | {figure.changes} | {figure.first:.2f} s | {figure.last:.2f} s "
            f"| {figure.worst:.2f} s | {figure.memory / 1024:.1f} KiB |"
        ),
    ]
    summary = f"all notified after {figure.worst:.2f} s for the slowest change"
    verdict = _line(figure.worst <= TARGET_NOTIFIED, summary, "two seconds")
    return "\n".join([*lines, "", verdict])


def waiting_table(figure: WaitingFigure) -> str:
    """What calls that wait for an input response cost, as Markdown."""
    lines = [
        "| questions waiting | memory for each | one core, while nothing happens | all requests received after | all results received after |",
        "| ---: | ---: | ---: | ---: | ---: |",
        (
            f"| {figure.questions:,} | {figure.memory / 1024:.1f} KiB | {figure.idle:.1%} "
            f"| {figure.asking:.1f} s | {figure.answered:.1f} s |"
        ),
        "",
        "| new calls | requests/s | p99 ms |",
        "| --- | ---: | ---: |",
        f"| with no question open | {figure.rate_alone:,.0f} | {figure.alone:.2f} |",
        f"| beside {figure.questions:,} calls that wait | {figure.rate_beside:,.0f} | {figure.beside:.2f} |",
    ]
    small = figure.memory <= TARGET_QUESTION
    memory = _line(small, f"{figure.memory / 1024:.1f} KiB for each", "at most 30 KiB")
    times = figure.beside / figure.alone
    latency = _line(times <= TARGET_LATENCY, f"p99 {times:.2f} times as high", "at most 1.5")
    return "\n".join([*lines, "", memory, latency])


def set_up_table(figures: Sequence[SetUpFigure]) -> str:
    """What calls that wait for an input response cost to set up, compared with the SDK, as Markdown."""
    if not figures:
        return ""
    count = figures[0].questions
    lines = [
        f"| server | memory for each of {count:,} | set up per second | the first {count:,} | as many again |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.label} | {figure.memory / 1024:.1f} KiB | {figure.rate:,.0f} "
        f"| {figure.first:,.0f} | {figure.second:,.0f} |"
        for figure in figures
    ]
    lines.append("")
    for figure in figures:
        if figure.label == SDK.label:
            continue
        memory = f"{figure.label}: {figure.memory / 1024:.1f} KiB for each of {count:,}"
        rate = f"{figure.label}: {figure.rate:,.0f} set up per second, up to {2 * count:,}"
        lines.append(_line(figure.memory <= TARGET_SESSION, memory, "at most 25 KiB"))
        lines.append(_line(figure.rate >= TARGET_SET_UP, rate, f"at least {TARGET_SET_UP}"))
    return "\n".join(lines).strip()


def tasks_table(figures: Sequence[TasksFigure]) -> str:
    """What tasks cost, and those that wait, beside one another, as Markdown."""
    lines = [
        "| server | CPU per task | times FastMCP's | tasks/s | lowest to highest pass | polls per task | the clients' CPU per task | answer to result, p50 / p95 ms |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.label} | {figure.cpu * 1e3:.2f} ms | {_times(figure.ratio)} "
        f"| {figure.rate:,.0f} | {figure.low:,.0f} to {figure.high:,.0f} | {figure.polls:.1f} "
        f"| {figure.clients_cpu * 1e3:.2f} ms "
        f"| {figure.answered.p50:.0f} / {figure.answered.p95:.0f} |"
        for figure in figures
    ]
    lines += [
        "",
        "| server | tasks that wait | memory for each | all requests received after |",
        "| --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.label} | {waited.tasks:,} | {waited.memory:,.0f} bytes | {waited.seconds:.1f} s |"
        for figure in figures
        for waited in figure.waited
    ]
    verdicts = [
        _line(
            waited.memory <= TARGET_TASK,
            f"{figure.label}: {waited.memory:,.0f} bytes for each of {waited.tasks:,} tasks that wait",
            f"at most {TARGET_TASK}",
        )
        for figure in figures
        if figure.name.startswith("mcphost")
        for waited in figure.waited[-1:]
    ]
    return "\n".join([*lines, "", *verdicts]).strip()


def asking_table(figures: Sequence[Figure], sealed: Sequence[SealingFigure]) -> str:
    """Calls of two legs beside one another, what a token costs, and the verdict, as Markdown."""
    lines = [
        "| server | CPU per call | calls/s | lowest to highest pass | times the tuned SDK's | p50 ms per leg | p99 ms per leg | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {figure.label} | {figure.cpu * 1e6:,.0f} µs | {figure.rate:,.0f} "
        f"| {figure.low:,.0f} to {figure.high:,.0f} | {_times(figure.ratios.get('sdk'))} "
        f"| {figure.p50:.2f} | {figure.p99:.2f} | {figure.errors} |"
        for figure in figures
    ]
    return "\n".join([*lines, "", *_sealing_table(sealed), "", *_asking_verdict(figures)])


def _sealing_table(sealed: Sequence[SealingFigure]) -> list[str]:
    lines = [
        "| what is sealed | the token | sealing | opening |",
        "| ---: | ---: | ---: | ---: |",
    ]
    return lines + [
        f"| {figure.payload:,} bytes | {figure.token:,} characters "
        f"| {figure.seal * 1e6:.0f} µs | {figure.unseal * 1e6:.0f} µs |"
        for figure in sealed
    ]


def _asking_verdict(figures: Sequence[Figure]) -> list[str]:
    lines = []
    claim = claim_seconds(figures)
    if claim is not None:
        lines.append(f"- a claim adds {claim * 1e6:.0f} µs of CPU to a call")
    ratio = {figure.name: figure.ratios for figure in figures}.get("mcphost", {}).get("sdk")
    if ratio is not None:
        summary = f"{ratio:.2f} times the tuned SDK's throughput"
        lines.append(_line(ratio >= TARGET_ASKING, summary, f"at least {TARGET_ASKING:g}"))
    return lines


def sessions_tables(figures_by_revision: Mapping[str, Sequence[SessionsFigure]]) -> str:
    """Whole sessions of real clients beside one another, two tables per revision, as Markdown."""
    parts = []
    for revision, figures in figures_by_revision.items():
        era = "stateless" if revision == STATELESS else "session-based"
        lines = [
            f"### Revision {revision}, {era}",
            "",
            "| server | CPU per session | lowest to highest pass | times the tuned SDK's | sessions/s | the clients' CPU per session | errors |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        lines += [
            f"| {figure.label} | {figure.cpu * 1e3:.2f} ms "
            f"| {figure.low * 1e3:.2f} to {figure.high * 1e3:.2f} ms | {_times(figure.ratio)} "
            f"| {figure.rate:,.0f} | {figure.clients_cpu * 1e3:.2f} ms | {figure.errors} |"
            for figure in figures
        ]
        lines += [
            "",
            "| p50 / p99 ms | connect | list the tools | call to first question | answer to next message |",
            "| --- | ---: | ---: | ---: | ---: |",
        ]
        for figure in figures:
            steps = [f"{step.p50:.0f} / {step.p99:.0f}" for step in figure.steps.values()]
            lines.append(f"| {' | '.join([figure.label, *steps])} |")
        limit = TARGETS_SESSIONS[revision]
        lines += [""] + [
            _line(
                figure.ratio <= limit,
                f"{figure.label}: {figure.ratio:.2f} times the tuned SDK's CPU per session",
                f"at most {limit:g}",
            )
            for figure in figures
            if figure.ratio is not None and figure.name != SDK.name
        ]
        parts.append("\n".join(lines).strip())
    return "\n\n".join(parts)


def verdict(figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """Each target that was set, and whether this run reached it. Empty if a peer is missing."""
    lines: list[str] = []
    for count, figures in figures_by_count.items():
        rows = {figure.name: figure for figure in figures}
        if not {"mcphost", "sdk", "bare"} <= rows.keys():
            return ""
        lines += _cpu_verdict(count, rows["mcphost"]) + _whole_cpu_verdict(count, rows["mcphost"])
        lines += _rate_verdict(count, rows["mcphost"])
    return "\n".join(lines)


def _cpu_verdict(count: int, figure: Figure) -> list[str]:
    if (limit := TARGETS_CPU.get(count)) is None:
        return []
    ratio = figure.cpu_ratios["bare"]
    summary = f"{_connections(count)}: {ratio:.2f} times the bare app's CPU per call"
    return [_line(ratio <= limit, summary, f"at most {limit:g}")]


def _whole_cpu_verdict(count: int, figure: Figure) -> list[str]:
    if (limit := TARGETS_WHOLE_CPU.get(count)) is None:
        return []
    ratio = figure.whole_cpu_ratios["bare"]
    summary = f"{_connections(count)}: {ratio:.2f} times with the work after the load"
    return [_line(ratio <= limit, summary, f"at most {limit:g}")]


def _rate_verdict(count: int, figure: Figure) -> list[str]:
    if (least := TARGETS_OVER_SDK.get(count)) is None:
        return []
    ratio = figure.ratios["sdk"]
    summary = f"{_connections(count)}: {ratio:.2f} times the tuned SDK's throughput"
    return [_line(ratio >= least, summary, f"at least {least:g}")]


def _line(reached: bool, summary: str, target: str) -> str:
    return f"- {summary} (wanted: {target}): {'reached' if reached else '**missed**'}"


def conditions(facts: Mapping[str, str], plan: Plan, labels: Sequence[str]) -> str:
    """Where, when and how it was measured, and of whom the revision was verified, as Markdown."""
    lines = [f"- {name}: {fact}" for name, fact in facts.items()]
    spoken = f"- revision {REVISION}: verified of {'; '.join(labels)}"
    day = time.strftime("%Y-%m-%d", time.gmtime())
    how = (
        f"Measured on {day}: {plan.passes} passes of {plan.seconds} s per server and number of "
        f"connections, in turn, after {plan.warm_up} s of warm-up."
    )
    return "\n".join([how, "", *lines, spoken])


def record_table(figure: RecordFigure) -> str:
    """Pages of the console and reads of the API over a large record, as Markdown."""
    load, loop = figure.load, figure.loop
    delays = (
        f"The longest response of the event loop took {loop.idle * 1e3:,.0f} ms while nothing was read, "
        f"{loop.pages * 1e3:,.0f} ms beside the pages and {loop.reads * 1e3:,.0f} ms beside the API. "
        f"Load average of the machine at the end: {load:.1f}."
    )
    return "\n\n".join(
        [
            f"### Pages over {figure.entries:,} entries: {figure.label}",
            _looks_table("page", figure.pages),
            f"### The API over {figure.entries:,} entries: {figure.label}",
            _looks_table("list or object", figure.reads),
            delays,
        ]
    )


def _looks_table(subject: str, figures: Sequence[PageFigure]) -> str:
    lines = [
        f"| {subject} | p50 ms | longest ms | first look ms | CPU ms | KB |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {page.name} | {median(page.looks) * 1e3:,.0f} | {max(page.looks) * 1e3:,.0f} "
        f"| {page.first * 1e3:,.0f} | {page.cpu * 1e3:,.0f} | {page.size / 1000:,.0f} |"
        for page in figures
    ]
    slow = [page.name for page in figures if _is_slow(page)]
    verdict = f"**missed** by {', '.join(slow)}" if slow else "**reached** by all"
    return "\n".join([*lines, "", f"- at most {TARGET_PAGE * 1e3:.0f} ms at p50: {verdict}"])


def _is_slow(page: PageFigure) -> bool:
    return median(page.looks) > TARGET_PAGE


def sockets_table(figure: SocketsFigure) -> str:
    """Calls beside open live lists, as Markdown."""
    without, beside = zip(*figure.samples, strict=True)
    lines = [
        f"### Calls beside {figure.count:,} open live lists",
        "",
        "| live lists | idle, of a core | CPU per call | calls/s | p50 ms | p99 ms | errors |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = zip(("none", f"{figure.count:,}"), figure.idle, (without, beside), strict=True)
    lines += [
        f"| {name} | {idle:.1%} | {median(s.cpu_per_call for s in samples) * 1e6:,.0f} µs "
        f"| {median(s.rate for s in samples):,.0f} | {median(s.p50 for s in samples):.2f} "
        f"| {median(s.p99 for s in samples):.2f} | {sum(s.errors for s in samples)} |"
        for name, idle, samples in rows
    ]
    memory = f"A live list takes {figure.memory:,.0f} bytes; all were told {figure.rows:,} rows."
    return "\n".join([*lines, "", memory])


def following_table(label: str, figures_by_count: Mapping[int, Sequence[Figure]]) -> str:
    """Calls with and without the summaries that are written beside them, as Markdown."""
    lines = [
        f"### Calls with and without the summaries: {label}",
        "",
        "| connections | summaries | CPU per call | of that without | calls/s | lowest to highest pass | of those without | p50 ms | p99 ms | errors |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    missed = []
    for count, figures in figures_by_count.items():
        for figure in figures:
            ratio = figure.cpu_ratios[ALONE]
            lines.append(
                f"| {count} | {figure.label} | {figure.cpu * 1e6:,.0f} µs | {ratio:.2f} | {figure.rate:,.0f} "
                f"| {figure.low:,.0f} to {figure.high:,.0f} | {figure.ratios[ALONE]:.0%} | {figure.p50:.2f} "
                f"| {figure.p99:.2f} | {figure.errors} |"
            )
            missed += [_connections(count)] if ratio > TARGET_SUMMARIES else []
    verdict = f"**missed** with {', '.join(missed)}" if missed else "**reached**"
    return "\n".join(
        [*lines, "", f"- at most {TARGET_SUMMARIES} times the CPU per call: {verdict}"]
    )
