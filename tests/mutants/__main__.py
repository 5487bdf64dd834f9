"""`python -m tests.mutants [NAME…]`: make mistakes in the product, one at a time, and run their tests.

A name is that of a mutant (`calls.claim-taken-over-twice`) or of a package (`calls`); without any, all are
made. Each is made in a copy of the checkout, on SQLite: the checkout itself stays as it is. Before, the
tests have to pass without a mistake. The exit code is 1 if a mutant survives.
"""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.mutants.mutant_list import ROOT, Mutant, mutants

SECONDS: Final = 120.0
"""How long the tests of one mutant may take: a mistake may make one wait for ever."""
BASELINE_SECONDS: Final = 1800.0
SHOWN: Final = 10_000
"""Characters of what pytest wrote that are shown where the tests do not pass without a mistake."""
KILLED, TIMED_OUT, SURVIVED, BROKEN = "killed", "timed out", "survived", "broken"
"""How a mutant ends. It is broken if pytest could not run the tests: the mistake is not one that could be
made without being noticed at once."""
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class End(NamedTuple):
    """How a run of tests ended: `by` is the test that failed first, `output` what pytest wrote."""

    word: str
    seconds: float
    by: str
    output: str


class Copy:
    """A copy of the checkout, in which one mutant lives at a time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "copy"
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                target = self._path / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        (self._path / ".venv").symlink_to((ROOT / ".venv").resolve())
        # By their content: a mutant is written in the same second as the file before it.
        checked = PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(self._path / "mcphost", quiet=1, invalidation_mode=checked)

    def end_of(self, mutant: Mutant) -> End:
        """Make the mistake, run its tests until one fails, and undo it."""
        path = self._path / mutant.file
        source = path.read_text()
        path.write_text(mutant.mutated(source))
        try:
            return self.run(mutant.tests, SECONDS)
        finally:
            path.write_text(source)

    def run(self, tests: Iterable[str], seconds: float, *options: str) -> End:
        """Run tests until one fails, for at most so many seconds."""
        command = [".venv/bin/python", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        environment = {
            name: text for name, text in os.environ.items() if name != "TEST_DATABASE_URL"
        }
        began = time.monotonic()
        try:
            ended = subprocess.run(
                [*command, *options, *tests],
                cwd=self._path,
                env={**environment, "TMPDIR": str(self._temporary)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return End(TIMED_OUT, time.monotonic() - began, "", "")
        output = ended.stdout
        word = {0: SURVIVED, 1: KILLED}.get(ended.returncode, BROKEN)
        failed = _FAILED.search(output)
        return End(word, time.monotonic() - began, failed[1] if failed else "", output)


def chosen(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of these names and packages. Raises SystemExit for a name that there is not."""
    known = mutants()
    unknown = {*names} - {mutant.name for mutant in known} - {mutant.package for mutant in known}
    if unknown:
        sys.exit(f"There is no mutant and no package {', '.join(sorted(unknown))}")
    return [each for each in known if not names or each.name in names or each.package in names]


def check_baseline(copy: Copy, selected: Iterable[Mutant], at_once: int) -> None:
    """Run the tests without a mistake. Raises SystemExit if one fails: it would kill every mutant."""
    tests = sorted({test for mutant in selected for test in mutant.tests})
    end = copy.run(tests, BASELINE_SECONDS, "-n", str(at_once), "--dist", "loadfile")
    if end.word != SURVIVED:
        sys.exit(f"{end.output[-SHOWN:]}\nThe tests do not pass without a mutant.")
    print(f"{'unchanged':9} {end.seconds:6.1f} s  {len(tests)} files and tests pass")


def make_all(selected: Sequence[Mutant], at_once: int, *, green: bool) -> dict[Mutant, End]:
    """Make the mutants, `at_once` at a time, and say how each has ended."""
    ends: dict[Mutant, End] = {}
    free: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mcphost-mutants-") as folder:
        Path(folder).chmod(0o755)  # workers of the sandbox run as other users
        for number in range(at_once):
            (place := Path(folder) / str(number)).mkdir()
            free.put(Copy(place))
        if not green:
            check_baseline(first := free.get(), selected, at_once)
            free.put(first)

        def make(mutant: Mutant) -> None:
            copy = free.get()
            try:
                end = ends[mutant] = copy.end_of(mutant)
            finally:
                free.put(copy)
            said = f"\n{end.output}" if end.word == BROKEN else f"  {end.by}"
            print(f"{end.word:9} {end.seconds:6.1f} s  {mutant.name}{said}", flush=True)

        with ThreadPoolExecutor(at_once) as threads:
            try:
                for _ in threads.map(make, selected):
                    pass
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
    return ends


def show(ends: dict[Mutant, End]) -> None:
    """Print a table of the packages, and what is to be done."""
    words = (KILLED, TIMED_OUT, SURVIVED, BROKEN)
    print("\n" + " ".join(f"{title:>13}" for title in ("", *words, "seconds")))
    for package in [*dict.fromkeys(mutant.package for mutant in ends), "all"]:
        of = [end for mutant, end in ends.items() if package in (mutant.package, "all")]
        counts = Counter(end.word for end in of)
        cells = [
            package,
            *(str(counts[word]) for word in words),
            f"{sum(e.seconds for e in of):.0f}",
        ]
        print(" ".join(f"{cell:>13}" for cell in cells))
    for mutant, end in ends.items():
        if end.word in (SURVIVED, BROKEN):
            print(
                f"\n{end.word}: {mutant.name}\n  {mutant.file}\n  - {mutant.old}\n  + {mutant.new}"
            )


def main() -> int:
    """Read the command line, make the mutants, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a mutant or a package; all by default"
    )
    parser.add_argument("-n", dest="at_once", type=int, choices=(1, 2), default=1, help="at a time")
    parser.add_argument(
        "--green", action="store_true", help="the tests are known to pass: do not check"
    )
    options = parser.parse_args()
    ends = make_all(chosen(options.names), options.at_once, green=options.green)
    show(ends)
    return int(any(end.word in (SURVIVED, BROKEN) for end in ends.values()))


if __name__ == "__main__":
    sys.exit(main())
