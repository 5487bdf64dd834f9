"""Make the fonts of the console: `make fonts`, or `python -m fonts <folder>`.

`source/` has the complete fonts. What is served has the characters of European languages and the icons
that `icons.txt` names: about a tenth of the bytes. Other characters come from the fonts of the browser.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from fontTools import subset
from fontTools.ttLib import TTFont

SOURCE: Final = Path(__file__).resolve().parent / "source"
SERVED: Final = SOURCE.parents[1] / "static" / "fonts"
"""The folder of the fonts that are committed and served."""
ICONS: Final = SOURCE.parent / "icons.txt"
TEXT_FONTS: Final = tuple(
    f"inter/Inter-{weight}.woff2" for weight in ("Regular", "Medium", "SemiBold")
)
ICON_FONT: Final = "material-symbols/Material-Symbols-Outlined.woff2"
CHARACTERS: Final = (
    range(0x20, 0x7F),  # Basic Latin
    range(0xA0, 0x180),  # Latin-1 Supplement, Latin Extended-A
    range(0x2010, 0x2028),  # dashes, quotation marks, bullet, ellipsis
    range(0x2030, 0x203B),
    (0x20AC, 0x2122, 0x2212, 0x2248, 0x2260, 0x2264, 0x2265, 0x2713, 0x2717),
    range(0x2190, 0x2194),  # arrows
)
TEXT_FEATURES: Final = ("kern", "liga", "calt", "ccmp", "locl", "mark", "mkmk", "tnum")


class UnknownIconError(Exception):
    """The font has no icon of a name."""


def icon_names() -> list[str]:
    """Return the names of the icons that pages may use."""
    return ICONS.read_text().split()


def build(to: Path) -> None:
    """Write the fonts to a folder. Raises UnknownIconError."""
    for name in TEXT_FONTS:
        options = _options(TEXT_FEATURES)
        _write(to / name, options, unicodes=[code for codes in CHARACTERS for code in codes])
    glyphs = _glyphs_by_icon(TTFont(SOURCE / Path(ICON_FONT).name))
    names = icon_names()
    if unknown := sorted(set(names) - glyphs.keys()):
        raise UnknownIconError(", ".join(unknown))
    # A browser shows the icon in place of the letters of its name: a ligature.
    options = _options(("rlig",))
    options.layout_closure = False  # or every icon would follow from the letters
    _write(
        to / ICON_FONT,
        options,
        text="".join(sorted(set("".join(names)))),
        glyphs=sorted(glyphs[name] for name in names),
    )


def _options(features: tuple[str, ...]) -> Any:
    options = subset.Options()
    options.flavor = "woff2"
    options.layout_features = list(features)
    options.hinting = False  # screens with enough pixels ignore it
    options.drop_tables += ["FFTM"]  # when the font was made
    return options


def _write(to: Path, options: Any, **kept: Any) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    font = subset.load_font(str(SOURCE / to.name), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(**kept)
    subsetter.subset(font)
    subset.save_font(font, str(to), options)


def _glyphs_by_icon(font: Any) -> dict[str, str]:
    """Return the glyph of each icon by its name in lower case."""
    letters: dict[str, str] = {}
    for code, glyph in font.getBestCmap().items():
        letters.setdefault(glyph, chr(code).lower())
    return {
        "".join(letters[glyph] for glyph in (first, *ligature.Component)): ligature.LigGlyph
        for table in _ligature_tables(font)
        for first, ligatures in table.items()
        for ligature in ligatures
        if letters.keys() >= {first, *ligature.Component}
    }


def _ligature_tables(font: Any) -> Iterator[Any]:
    for lookup in font["GSUB"].table.LookupList.Lookup:
        for subtable in lookup.SubTable:
            table = getattr(subtable, "ExtSubTable", subtable)
            if hasattr(table, "ligatures"):
                yield table.ligatures


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else SERVED)
