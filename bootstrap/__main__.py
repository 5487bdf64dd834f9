"""`python3 -m bootstrap runtime|dev [--serve]`: exit 0 when everything is there, 1 with advice.

`--serve` also checks that HOST and PORT can be listened on.
"""

import fcntl
import os
import sys
from pathlib import Path

from bootstrap import environment, preflight

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: "list[str]") -> int:
    profile = "dev" if "dev" in arguments else "runtime"
    if "--serve" in arguments:
        problem = preflight.address_problem(os.environ)
        if problem:
            return refuse(problem)
    # Two `make`s at once would take each other's half-made environment away.
    with (ROOT / "requirements.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return prepare(environment.Environment(ROOT), profile)


def prepare(place: environment.Environment, profile: str) -> int:
    """Make the environment unless it is complete; 0, or 1 after saying what would help."""
    if place.is_complete(profile):
        return 0
    interpreter = preflight.choose_interpreter()
    problem = preflight.interpreter_problem(interpreter)
    if problem or interpreter is None:
        return refuse(problem)
    print(
        "Setting up .venv with Python {0} ({1}); this happens once and takes a minute or two.".format(
            interpreter.version, profile
        ),
        flush=True,
    )
    try:
        place.make(profile, interpreter.command)
    except environment.SetupError as error:
        return refuse(str(error))
    return 0


def refuse(problem: str) -> int:
    print("mcphost: " + problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
