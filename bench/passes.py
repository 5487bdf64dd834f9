"""Servers side by side: all run, each is measured in turn, several times over."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, summarise
from bench.load import Sample, Target, measure
from bench.peers import Peer, UnavailableError, serving
from bench.verify import verify


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how often: `passes` times in turn, `seconds` each, after `warm_up` seconds."""

    passes: int
    seconds: int
    warm_up: int


SMOKE = Plan(passes=1, seconds=1, warm_up=0)


def compare(peers: Sequence[Peer], plan: Plan) -> tuple[Figure, ...]:
    """Start every peer that can run, measure all in turn, end them. What cannot run is named."""
    labels = {peer.name: peer.label for peer in peers}
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder, ExitStack() as stack:
        targets: dict[str, Target] = {}
        for peer in peers:
            try:
                place = Path(folder) / peer.name
                targets[peer.name] = stack.enter_context(serving(peer, place))
            except UnavailableError as reason:
                print(f"{peer.label} is left out: {reason}", flush=True)
        return summarise(labels, _take_turns(targets, plan))


def _take_turns(targets: Mapping[str, Target], plan: Plan) -> dict[str, list[Sample]]:
    if plan.warm_up:
        for target in targets.values():
            measure(target, plan.warm_up)
    samples: dict[str, list[Sample]] = {name: [] for name in targets}
    for number in range(plan.passes):
        for name, target in targets.items():
            sample = measure(target, plan.seconds)
            samples[name].append(sample)
            print(
                f"pass {number + 1}/{plan.passes}  {name:<12} {sample.rate:>9,.0f}/s  "
                f"p50 {sample.p50:.2f} ms  p99 {sample.p99:.2f} ms  errors {sample.errors}",
                flush=True,
            )
    for target in targets.values():
        verify(target)
    return samples
