"""Tests of the era of a message without a named version."""

import pytest

from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.revisions import Era, era_of


@pytest.mark.parametrize("header", [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_missing_version_header_or_one_before_2026_is_legacy(header):
    assert era_of(header) is Era.LEGACY


@pytest.mark.parametrize(
    "header", ["2026-07-28", "2027-01-01", "v999.0.0", "", "2025-11-25, 2025-11-25", "٢٠٢٥-11-25"]
)
def test_any_other_version_header_is_modern(header):
    assert era_of(header) is Era.MODERN


@pytest.mark.parametrize(("era", "is_mirrored"), [(Era.MODERN, True), (Era.LEGACY, False)])
def test_only_the_stateless_revision_mirrors_values_in_headers(era, is_mirrored):
    assert Exchange(1, "tools/call", {}, Meta(), era, "any").is_mirrored is is_mirrored
