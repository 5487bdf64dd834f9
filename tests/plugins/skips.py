"""Fail skipped tests in CI: a test that did not run proves nothing, and skips go unnoticed.

A test for only one database is marked `sqlite` or `postgresql`. Runs on the other database leave it
out, which is not a skip: `make test` runs on both. With `--only-database` tests that may not use the
database (pytest-django refuses it to them) are left out, too: they were run before, on the other one.
"""

import os
from collections.abc import Generator

import pytest
from django.db import connection
from django.test import SimpleTestCase

DATABASES = ("sqlite", "postgresql")
FIXTURES = frozenset({"db", "transactional_db", "django_db_setup"})
EXPLANATION = "skipped, and with CI=true nothing may skip"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-database", action="store_true", help="leave out tests that may not use the database"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [name for name in DATABASES if name != connection.vendor]
    every = not config.getoption("--only-database")
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        of_other = any(item.get_closest_marker(name) for name in others)
        (kept if not of_other and (every or uses_database(item)) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def uses_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("django_db") is not None:
        return True
    of_class = getattr(item, "cls", None)
    if of_class is not None and issubclass(of_class, SimpleTestCase):
        return True
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


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
    report = yield
    if in_ci() and report.skipped:
        report.longrepr = f"{collector.nodeid} {EXPLANATION}: {_reason(report)}"
        report.outcome = "failed"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
