"""Fail skipped tests in CI: a test that did not run proves nothing, and skips go unnoticed.

A test for only one database is marked `sqlite` or `postgresql`. Runs on the other database leave it
out, which is not a skip: `make test` runs on both.
"""

import os
from collections.abc import Generator

import pytest
from django.db import connection

DATABASES = ("sqlite", "postgresql")
EXPLANATION = "skipped, and with CI=true nothing may skip"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [name for name in DATABASES if name != connection.vendor]
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in others)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        report.longrepr = f"{EXPLANATION}: {_reason(report)}"
        report.outcome = "failed"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a module that is skipped as a whole."""
    report = yield
    if in_ci() and report.skipped:
        report.longrepr = f"{collector.nodeid} {EXPLANATION}: {_reason(report)}"
        report.outcome = "failed"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
