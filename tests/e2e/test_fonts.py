"""The fonts that are served are what `make fonts` makes of the complete ones, byte for byte."""

from pathlib import Path

from fonts.__main__ import ICON_FONT, SERVED, TEXT_FONTS, build

LARGEST = 80 * 1024


def test_the_committed_fonts_equal_fresh_ones(tmp_path: Path) -> None:
    build(tmp_path)
    for name in (*TEXT_FONTS, ICON_FONT):
        same = (tmp_path / name).read_bytes() == (SERVED / name).read_bytes()
        assert same, f"{name} is stale: run `make fonts`"


def test_all_fonts_together_are_small() -> None:
    assert sum((SERVED / name).stat().st_size for name in (*TEXT_FONTS, ICON_FONT)) < LARGEST
