"""The editor's bundle is what its source and its lock make, byte for byte."""

from pathlib import Path

from editor.__main__ import SERVED, build

LARGEST = 450 * 1024
FILES = ("editor.js", "licenses.txt")


def test_the_committed_bundle_equals_a_fresh_build(tmp_path: Path) -> None:
    build(tmp_path / "bundle", tmp_path / "work")
    assert sorted(path.name for path in SERVED.iterdir()) == sorted(FILES)
    for name in FILES:
        built, committed = tmp_path / "bundle" / name, SERVED / name
        assert built.read_bytes() == committed.read_bytes(), f"{name} is stale: run `make editor`"


def test_the_bundle_is_small_and_has_its_licences() -> None:
    assert (SERVED / "editor.js").stat().st_size < LARGEST
    assert (
        (SERVED / "editor.js").read_text().startswith("/*! The script editor, with CodeMirror 6.")
    )
    licences = (SERVED / "licenses.txt").read_text()
    for name in ("@codemirror/view", "@lezer/python", "style-mod"):
        assert f"\n{name} " in licences
    assert licences.count("Permission is hereby granted") == licences.count("-" * 72)
