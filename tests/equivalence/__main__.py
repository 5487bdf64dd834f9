"""`python -m tests.equivalence [--record] [arguments of pytest]`."""

import os
import sys

import pytest

from tests.equivalence.transcripts import RECORD


def main(arguments: list[str]) -> int:
    rest = [one for one in arguments if one != "--record"]
    if len(rest) < len(arguments):
        os.environ[RECORD] = "1"
    return int(pytest.main(["-q", "tests/equivalence", *rest]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
