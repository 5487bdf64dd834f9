"""How CI evaluates the output of test processes (`.ci/run`)."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CALL = 'eval "$(sed -n \'/^after_summary/,/^}/p\' .ci/run)"; after_summary "$0"'
START = "============================= test session starts =============================="
PASSED = "================= 3 passed, 1 warning in 437.00s (0:07:17) =================="


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([START, "...", PASSED], ""),
        ([START, PASSED, "EXAMPLES=25 .venv/bin/python -m pytest tests/calls", START, PASSED], ""),
        ([START, "Task exception was never retrieved", PASSED], ""),
        ([START, PASSED, "Task exception was never retrieved", START, PASSED], "Task exception was never retrieved\n"),
        ([START, PASSED, "", "KeyError: 1"], "KeyError: 1\n"),
        (["ruff: all checks passed"], ""),
    ],
)  # fmt: skip
def test_output_after_the_test_summary_is_reported(
    tmp_path: Path, lines: list[str], found: str
) -> None:
    log = tmp_path / "test.log"
    log.write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        ["bash", "-c", CALL, log], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.stdout, done.returncode == 0) == (found, bool(found))
