"""Health facts: every part of the process that can fail has a probe here.

`/readyz` and the admin ask; whoever can fail answers. A problem keeps the process from its work; a
warning is of something that it can do without for a while. A probe is a function that returns what is
wrong, in words fit for anybody, or None. It is called on the event loop, so it looks at what is
already known and never waits.
"""

import logging
from collections.abc import Callable, Mapping

Probe = Callable[[], str | None]

log = logging.getLogger(__name__)


class Registry:
    """The probes of one process, by name."""

    def __init__(self) -> None:
        self._probes: dict[str, Probe] = {}
        self._warners: dict[str, Probe] = {}

    def register(self, name: str, probe: Probe) -> None:
        """Ask `probe` from now on. The last one registered under a name counts."""
        self._probes = {**self._probes, name: probe}

    def warn(self, name: str, probe: Probe) -> None:
        """The same for what leaves the process ready."""
        self._warners = {**self._warners, name: probe}

    def unregister(self, name: str) -> None:
        self._probes = {other: probe for other, probe in self._probes.items() if other != name}

    def names(self) -> tuple[str, ...]:
        return tuple(self._probes)

    def problems(self) -> dict[str, str]:
        """What is wrong, by probe; empty when all is well. A probe that fails is itself a problem."""
        return _answers(self._probes)

    def warnings(self) -> dict[str, str]:
        """What is wrong and leaves the process ready, by probe."""
        return _answers(self._warners)


def _answers(probes: Mapping[str, Probe]) -> dict[str, str]:
    answers = {name: _ask(name, probe) for name, probe in probes.items()}
    return {name: answer for name, answer in answers.items() if answer}


def _ask(name: str, probe: Probe) -> str | None:
    try:
        return probe()
    except Exception:
        log.exception("the health probe %s failed", name)
        return "its probe failed"


registry = Registry()
register = registry.register
unregister = registry.unregister
problems = registry.problems
warn = registry.warn
warnings = registry.warnings
