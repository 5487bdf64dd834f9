"""Tests that docs/observability.md and docs/dashboards name all metrics, and no others."""

import json
import re
from pathlib import Path

from opentelemetry.sdk import environment_variables
from prometheus_client.parser import text_string_to_metric_families

from mcphost.observability import counters, exposition, otel, tracing
from mcphost.observability.labels import CODES

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "observability.md").read_text()
DASHBOARD = (DOCS / "dashboards" / "mcphost.json").read_text()
ALERTS = (DOCS / "dashboards" / "alerts.yml").read_text()
ROW = re.compile(
    r"^\| `([a-z_]+)` \| (counter|gauge|histogram) \| ([a-z_`, ]*)\| .+ \|$", re.MULTILINE
)
NAME = re.compile(r"\b((?:mcphost|process|python_gc)_[a-z_]+)")
MATCHER = re.compile(r'(\w+)(?:=|!=|=~|!~)"([^"$.*]+)"')


def told() -> dict[str, tuple[str, str]]:
    """Return the page's rows: type and labels of each metric, by its name."""
    return {
        name: (kind, labels.replace("`", "").strip()) for name, kind, labels in ROW.findall(PAGE)
    }


def exported() -> dict[str, tuple[str, str]]:
    """Return the metrics of a scrape, in the format of the page's rows."""
    families = text_string_to_metric_families(exposition.render("")[0].decode())
    labels = {exposition.PREFIX + f.name: f.labels for f in counters.metrics.families.values()}
    found = {}
    for family in families:
        name = family.name + ("_total" if family.type == "counter" else "")
        known = labels.get(family.name, {k for s in family.samples for k in s.labels})
        if family.name == "mcphost_problem":
            known = {"probe"}
        found[name] = (family.type, ", ".join(known))
    return found


def series(name: str) -> set[str]:
    """Return the series names that queries may use for a metric of the page."""
    suffixes = ("_bucket", "_count", "_sum") if told()[name][0] == "histogram" else ("",)
    return {name + suffix for suffix in suffixes}


def test_every_metric_has_a_row_with_its_type_and_labels():
    assert told() == exported()


def test_dashboard_and_alerts_use_only_existing_metrics():
    every = {query for name in told() for query in series(name)}
    for text in (DASHBOARD, ALERTS):
        assert set(NAME.findall(text)) <= every


def test_the_dashboard_shows_every_metric():
    shown = set(NAME.findall(DASHBOARD))
    ours = {name for name in told() if name.startswith(exposition.PREFIX)}
    assert {name for name in ours if not series(name) & shown} == set()


def test_queries_use_only_label_values_that_exist():
    sets = {
        label: set(values)
        for family in counters.metrics.families.values()
        for label, values in family.labels.items()
    }
    assert set(CODES.values()) < sets["code"]
    asked = [
        pair
        for text in (json.dumps(json.loads(DASHBOARD)), ALERTS)
        for pair in MATCHER.findall(text.replace("\\", ""))
    ]
    assert asked
    for label, value in asked:
        if label in sets:
            assert set(value.split("|")) <= sets[label], (label, value)


def test_every_variable_that_enables_tracing_is_documented():
    told = set(re.findall(r"`(OTEL_[A-Z_]+)`", PAGE))
    ours = {*tracing.ENDPOINTS, *tracing.PROTOCOLS, tracing.EXPORTER, tracing.DISABLED}
    assert ours <= told
    assert told - ours <= set(vars(environment_variables))


def test_every_span_attribute_is_documented():
    source = Path(otel.__file__).read_text()
    made = set(re.findall(r'"((?:mcphost|mcp|gen_ai|rpc|error|jsonrpc)\.[a-z_.]+)"', source))
    told = {name for name in re.findall(r"`([a-z_.]+)`", PAGE) if "." in name}
    assert made <= told
