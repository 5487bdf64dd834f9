"""The command line: `python -m bench [call|ask|kinds|sessions|scale|nodes|listeners|waiting|tasks|console|profile ...] [--smoke]`."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bench import (
    asking,
    console,
    kinds,
    listeners,
    machine,
    nodes,
    peers,
    plot,
    postgresql,
    report,
    scale,
    sessions,
    tasks,
    waiting,
)
from bench.figures import Figure
from bench.load import CONNECTIONS, EACH_CONNECTIONS, LoadError, require_wrk
from bench.pages import write
from bench.passes import SMOKE, Plan, compare, compare_each
from bench.processes import StartError
from bench.verify import WrongAnswerError
from tests.e2e import shared_services

TOKENS = 20_000
FEW_TOKENS = 200
PROFILE = Plan(passes=3, seconds=2, warm_up=2)


@dataclass(frozen=True, slots=True)
class Run:
    """How to run a scenario, whether its figures go into the page, and the load average before."""

    plan: Plan
    peers: Sequence[str]
    writes_page: bool
    smoke: bool
    load: float
    records: Sequence[str] = ()

    @property
    def connections(self) -> Sequence[int]:
        return (CONNECTIONS,) if self.smoke else EACH_CONNECTIONS


def main() -> int:
    """0 when everything ran with no error, 1 otherwise. Figures never decide."""
    options = _options()
    plan = SMOKE if options.smoke else Plan(options.passes, options.seconds, warm_up=2)
    writes_page = not (options.smoke or options.no_write)
    run = Run(plan, options.peers, writes_page, options.smoke, os.getloadavg()[0], options.record)
    try:
        require_wrk()
        postgresql.find()
        good = [{**SCENARIOS, **TOOLS}[name](run) for name in options.scenarios]
    except (LoadError, StartError, WrongAnswerError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0 if all(good) else 1


def _call(run: Run) -> bool:
    selected_peers = [peer for peer in peers.ALL if peer.name in run.peers]
    figures_by_count = compare_each(selected_peers, run.plan, run.connections)
    text = f"{report.tables(figures_by_count)}\n\n{report.verdict(figures_by_count)}".strip()
    print(f"\n{text}\n", flush=True)
    # A page needs the peers that it compares with.
    if run.writes_page and report.verdict(figures_by_count):
        write("bench overview", report.overview(figures_by_count), report.PAGE)
        _write_call(run, text, figures_by_count[CONNECTIONS])
    return all(_no_errors(figures) for figures in figures_by_count.values())


def _write_call(run: Run, text: str, figures: Sequence[Figure]) -> None:
    labels = [figure.label for figure in figures if figure.name != peers.BARE.name]
    facts = {**machine.facts(), "load average before the run": f"{run.load:.2f}"}
    conditions = report.conditions(facts, run.plan, labels)
    write("bench call", "\n\n".join([report.IMAGE, text, conditions]), report.PAGE)
    note = (
        f"{CONNECTIONS} connections, one process each, in turn on the same machine; less is better"
    )
    report.PICTURE.write_text(plot.svg("CPU per authenticated tools/call of echo", note, figures))


def _ask(run: Run) -> bool:
    figures = compare(
        [peer for peer in asking.ALL if peer.name.partition("-")[0] in run.peers], run.plan
    )
    sealed = asking.sealing(FEW_TOKENS if run.smoke else TOKENS)
    _show(run, "bench ask", report.asking_table(figures, sealed))
    return _no_errors(figures)


def _kinds(run: Run) -> bool:
    figures_by_count = kinds.compare_each(run.plan, EACH_CONNECTIONS)
    _show(run, "bench kinds", report.kinds_tables(figures_by_count))
    return all(_no_errors(figures) for figures in figures_by_count.values())


def _sessions(run: Run) -> bool:
    longer = replace(run.plan, seconds=run.plan.seconds * sessions.TIMES_AS_LONG)
    few, many = (run.plan, sessions.SMALL_CROWD), (longer, sessions.CROWD)
    plan, clients = few if run.smoke else many
    figures_by_revision = sessions.compare(plan, clients, run.peers)
    _show(run, "bench sessions", report.sessions_tables(figures_by_revision))
    return all(_no_errors(figures) for figures in figures_by_revision.values())


def _scale(run: Run) -> bool:
    size = scale.SMALL_CROWD if run.smoke else scale.CROWD
    figures = compare(scale.databases(size), run.plan)
    _show(run, "bench scale", report.scale_table(figures))
    return _no_errors(figures)


def _nodes(run: Run) -> bool:
    if reason := shared_services.missing():
        print(f"nodes is LEFT OUT: {reason}", file=sys.stderr, flush=True)
        return not os.environ.get("CI")
    figures = nodes.compare(run.plan)
    _show(run, "bench nodes", report.nodes_table(figures))
    return _no_errors(figures)


def _listeners(run: Run) -> bool:
    few = (listeners.SMALL_CROWD, listeners.FEW_CHANGES)
    figure = listeners.listen(*(few if run.smoke else (listeners.CROWD, listeners.CHANGES)))
    _show(run, "bench listeners", report.listeners_table(figure))
    return True


def _waiting(run: Run) -> bool:
    few = (waiting.SMALL_CROWD, run.plan.seconds, waiting.FEW_PASSES)
    many = (waiting.CROWD, run.plan.seconds, waiting.PASSES)
    figure = waiting.wait(*(few if run.smoke else many))
    servers = [peer for peer in sessions.servers(sessions.SESSION_BASED) if peer.name in run.peers]
    half, passes = (
        (waiting.SMALL_HALF, waiting.FEW_PASSES) if run.smoke else (waiting.HALF, waiting.PASSES)
    )
    beside = waiting.set_up(servers, half, passes)
    text = f"{report.waiting_table(figure)}\n\n{report.set_up_table(beside)}"
    _show(run, "bench waiting", text)
    return not figure.errors


def _tasks(run: Run) -> bool:
    crowds = tasks.SMALL_CROWDS if run.smoke else tasks.CROWDS
    figures = tasks.compare(run.plan, crowds, run.peers)
    _show(run, "bench tasks", report.tasks_table(figures))
    return True


def _console(run: Run) -> bool:
    entries, looks = (
        (console.SMALL_RECORD, console.FEW_LOOKS) if run.smoke else (console.RECORD, console.LOOKS)
    )
    databases = (peers.ON_POSTGRESQL,) if run.smoke else (peers.MCPHOST, peers.ON_POSTGRESQL)
    recorded = console.record(entries, looks, run.records, databases)
    over = [report.record_table(figure) for figure in recorded]
    beside = console.sockets(console.SMALL_CROWD if run.smoke else console.CROWD, run.plan)
    following = console.following(run.plan, run.connections, databases)
    tables = [
        report.following_table(label, figures_by_count)
        for label, figures_by_count in following.items()
        if any(figures_by_count.values())
    ]
    _show(run, "bench console", "\n\n".join([*over, report.sockets_table(beside), *tables]))
    return all(
        _no_errors(figures)
        for figures_by_count in following.values()
        for figures in figures_by_count.values()
    )


def _show(run: Run, marker: str, text: str) -> None:
    print(f"\n{text}\n", flush=True)
    if run.writes_page:
        write(marker, text, report.PAGE)


def _no_errors(
    figures: Sequence[Figure] | Sequence[nodes.NodesFigure] | Sequence[sessions.SessionsFigure],
) -> bool:
    return not any(figure.errors for figure in figures)


def _profile(_run: Run) -> bool:
    """Writes nothing; always as long as its table needs to be steady."""
    figures_by_count = compare_each((peers.MCPHOST, peers.BARE), PROFILE, EACH_CONNECTIONS)
    print(report.profile_table(figures_by_count), flush=True)
    return all(_no_errors(figures) for figures in figures_by_count.values())


SCENARIOS: Mapping[str, Callable[[Run], bool]] = {
    "call": _call,
    "ask": _ask,
    "kinds": _kinds,
    "sessions": _sessions,
    "scale": _scale,
    "nodes": _nodes,
    "listeners": _listeners,
    "waiting": _waiting,
    "tasks": _tasks,
    "console": _console,
}
# Not part of the benchmark: it is run only where it is named.
TOOLS: Mapping[str, Callable[[Run], bool]] = {"profile": _profile}


def _options() -> argparse.Namespace:
    peer_names = [peer.name for peer in peers.ALL]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "scenarios",
        nargs="*",
        help="call: beside the peers; ask: calls of two legs; kinds: functions, scripts and HTTP tools; sessions: real clients from connecting to closing; scale: over a large database; nodes: two processes against "
        "one; listeners: how soon all hear of a change; waiting: what open questions cost; tasks: calls that outlive their requests; console: pages of the console over ten million entries, live lists, summaries. Without a name all of these. "
        "profile: CPU per call of mcphost and the bare app, in less than a minute, for developers; writes nothing",
    )
    parser.add_argument("--smoke", action="store_true", help="a second each, nothing is written")
    parser.add_argument("--no-write", action="store_true", help="leave docs/ as it is")
    parser.add_argument(
        "--record",
        nargs="+",
        default=[],
        metavar="FOLDER[=URL]",
        help="console: records that `python -m bench.record` filled, in the folder's `home` or the database of that URL",
    )
    parser.add_argument("--passes", type=int, default=5, help="turns per server (5)")
    parser.add_argument("--seconds", type=int, default=2, help="seconds of each turn (2)")
    parser.add_argument(
        "--peers", nargs="+", choices=peer_names, default=peer_names, metavar="PEER"
    )
    options = parser.parse_args()
    options.scenarios = options.scenarios or list(SCENARIOS)
    if unknown := set(options.scenarios) - {*SCENARIOS, *TOOLS}:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
