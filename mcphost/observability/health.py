"""Health probes: every part of the process that can fail registers one here.

`/readyz` and the console read them. Facts are about how the process is set up, and are no judgement. A problem makes the process unready; a warning is about something
that it can do without for a while. A probe is a function that returns what is wrong, as text that
may be public, or None. It is called on the event loop: it never waits, and reads what is known.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
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

    def register(self, name: str, probe: Probe) -> Callable[[], None]:
        """Register a probe for problems; it replaces an earlier one of that name.

        Returns what removes it, unless it has been replaced by then.
        """
        self._probes[name] = probe
        return partial(_remove, self._probes, name, probe)

    def warn(self, name: str, probe: Probe) -> Callable[[], None]:
        """Register a probe for warnings, which leave the process ready. Returns what removes it."""
        self._warners[name] = probe
        return partial(_remove, self._warners, name, probe)

    def inform(self, name: str, fact: Fact) -> Callable[[], None]:
        """Register facts, by name. Returns what removes them."""
        self._facts[name] = fact
        return partial(_remove, self._facts, name, fact)

    def facts(self) -> dict[str, Mapping[str, Any]]:
        """What is known, by name."""
        return {name: reported for name, fact in tuple(self._facts.items()) if (reported := fact())}

    def names(self) -> tuple[str, ...]:
        return tuple(self._probes)

    def problems(self) -> dict[str, str]:
        """What is wrong, by probe; empty if all is well. A probe that raises is a problem, too."""
        return _answers(self._probes)

    def warnings(self) -> dict[str, str]:
        """Warnings, by probe."""
        return _answers(self._warners)


def _remove(probes: dict[str, Any], name: str, probe: Any) -> None:
    if probes.get(name) is probe:
        del probes[name]


def _answers(probes: Mapping[str, Probe]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for name, probe in tuple(probes.items()):
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
problems = registry.problems
warn = registry.warn
inform = registry.inform
facts = registry.facts
warnings = registry.warnings
