"""The editor's bundle is what its source and its lock make, byte for byte."""

import json
from pathlib import Path

from editor.__main__ import SERVED, SOURCE, build

LARGEST = 450 * 1024
FILES = ("editor.js", "licenses.txt")


def test_the_committed_bundle_is_the_one_that_is_built(tmp_path: Path) -> None:
    build(tmp_path / "bundle", tmp_path / "work")
    assert sorted(path.name for path in SERVED.iterdir()) == sorted(FILES)
    for name in FILES:
        built, committed = tmp_path / "bundle" / name, SERVED / name
        assert built.read_bytes() == committed.read_bytes(), f"{name} is stale: run `make editor`"


def test_the_lock_names_no_registry_and_holds_exact_versions() -> None:
    lock = json.loads((SOURCE / "package-lock.json").read_text())
    packages = {path: one for path, one in lock["packages"].items() if path}
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert [path for path, one in packages.items() if "resolved" in one] == []
    assert "://" not in (SOURCE / "package-lock.json").read_text()
    wanted = json.loads((SOURCE / "package.json").read_text())
    for name, version in (wanted["dependencies"] | wanted["devDependencies"]).items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_the_bundle_is_small_and_its_licences_lie_beside_it() -> None:
    assert (SERVED / "editor.js").stat().st_size < LARGEST
    assert (
        (SERVED / "editor.js").read_text().startswith("/*! The script editor, with CodeMirror 6.")
    )
    licences = (SERVED / "licenses.txt").read_text()
    for name in ("@codemirror/view", "@lezer/python", "style-mod"):
        assert f"\n{name} " in licences
    assert licences.count("Permission is hereby granted") == licences.count("-" * 72)
