"""Health probes: every part of the process that can fail registers one here.

`/readyz` and the console read them. Facts are about how the process is set up, and are no judgement. A problem makes the process unready; a warning is about something
that it can do without for a while. A probe is a function that returns what is wrong, as text that
may be public, or None. It is called on the event loop: it never waits, and reads what is known.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

Probe = Callable[[], str | None]
Fact = Callable[[], Mapping[str, Any]]
"""Returns what is known so far, as JSON that may be public; empty if nothing is."""

log = logging.getLogger(__name__)


class Registry:
    """The probes of one process, by name."""

    def __init__(self) -> None:
        self._probes: dict[str, Probe] = {}
        self._warners: dict[str, Probe] = {}
        self._facts: dict[str, Fact] = {}

    def register(self, name: str, probe: Probe) -> None:
        """Register a probe for problems; it replaces an earlier one of that name."""
        self._probes = {**self._probes, name: probe}

    def warn(self, name: str, probe: Probe) -> None:
        """Register a probe for warnings, which leave the process ready."""
        self._warners = {**self._warners, name: probe}

    def inform(self, name: str, fact: Fact) -> None:
        """Register facts, by name."""
        self._facts = {**self._facts, name: fact}

    def facts(self) -> dict[str, Mapping[str, Any]]:
        """What is known, by name."""
        return {name: reported for name, fact in self._facts.items() if (reported := fact())}

    def unregister(self, name: str) -> None:
        self._probes = {
            probe_name: probe for probe_name, probe in self._probes.items() if probe_name != name
        }

    def names(self) -> tuple[str, ...]:
        return tuple(self._probes)

    def problems(self) -> dict[str, str]:
        """What is wrong, by probe; empty if all is well. A probe that raises is a problem, too."""
        return _answers(self._probes)

    def warnings(self) -> dict[str, str]:
        """Warnings, by probe."""
        return _answers(self._warners)


def _answers(probes: Mapping[str, Probe]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for name, probe in probes.items():
        try:
            answer = probe()
        except Exception:
            log.exception("the health probe %s raised an error", name)
            answer = "the health probe raised an error"
        if answer:
            answers[name] = answer
    return answers


registry = Registry()
register = registry.register
unregister = registry.unregister
problems = registry.problems
warn = registry.warn
inform = registry.inform
facts = registry.facts
warnings = registry.warnings
