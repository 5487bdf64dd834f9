"""The command line: `python -m bench [call|scale ...] [--smoke]`."""

import argparse
import sys
from collections.abc import Sequence

from bench import machine, peers, plot, report, scale
from bench.figures import Figure
from bench.load import LoadError, require_wrk
from bench.passes import SMOKE, Plan, compare
from bench.processes import StartError
from bench.verify import WrongAnswerError


def main() -> int:
    """0 when everything ran with no error, 1 otherwise. Figures never decide."""
    options = _options()
    plan = SMOKE if options.smoke else Plan(options.passes, options.seconds, warm_up=2)
    keep = not (options.smoke or options.no_write)
    try:
        require_wrk()
        figures: list[Figure] = []
        if "call" in options.scenarios:
            figures += _call(plan, options.peers, keep=keep)
        if "scale" in options.scenarios:
            figures += _scale(plan, keep=keep, smoke=options.smoke)
    except (LoadError, StartError, WrongAnswerError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 1 if any(figure.errors for figure in figures) else 0


def _call(plan: Plan, names: Sequence[str], *, keep: bool) -> tuple[Figure, ...]:
    figures = compare([peer for peer in peers.ALL if peer.name in names], plan)
    text = f"{report.table(figures)}\n\n{report.verdict(figures)}".strip()
    print(f"\n{text}\n", flush=True)
    if keep and report.verdict(figures):  # a page needs the peers that it compares with
        parts = [report.IMAGE, text, report.conditions(machine.facts(), plan)]
        report.write("bench call", "\n\n".join(parts))
        note = "16 connections, one worker each, in turn on the same machine"
        report.PICTURE.write_text(plot.svg("Authenticated tools/call of echo", note, figures))
    return figures


def _scale(plan: Plan, *, keep: bool, smoke: bool) -> tuple[Figure, ...]:
    size = scale.SMALL_CROWD if smoke else scale.CROWD
    figures = compare(scale.databases(size), plan)
    text = report.scale_table(figures)
    print(f"\n{text}\n", flush=True)
    if keep:
        report.write("bench scale", text)
    return figures


def _options() -> argparse.Namespace:
    known = [peer.name for peer in peers.ALL]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "scenarios", nargs="*", help="call: beside the peers; scale: over a large database"
    )
    parser.add_argument("--smoke", action="store_true", help="a second each, nothing is written")
    parser.add_argument("--no-write", action="store_true", help="leave docs/ as it is")
    parser.add_argument("--passes", type=int, default=7, help="turns per server (7)")
    parser.add_argument("--seconds", type=int, default=5, help="length of each turn (5)")
    parser.add_argument("--peers", nargs="+", choices=known, default=known, metavar="PEER")
    options = parser.parse_args()
    options.scenarios = options.scenarios or ["call", "scale"]
    if unknown := set(options.scenarios) - {"call", "scale"}:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    sys.exit(main())
