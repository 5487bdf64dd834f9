"""Pages of the documentation with parts that programs write, between markers."""

from pathlib import Path


def write(marker: str, text: str, page: Path) -> None:
    """Put `text` between the page's markers of that name; everything else stays as it is."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    before, opening, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (opening and closed):
        raise ValueError(f"{page} has no place for {marker!r}: {begin} … {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
