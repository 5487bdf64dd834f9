"""Large OpenAPI documents of public services import within the limits. npm has them."""

import base64
import hashlib
import os
import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from mcphost.catalogue.kinds import http_kind
from mcphost.kinds.http.openapi_finding import MOST_LISTED, Reading, find
from tests.e2e.node_client import INSTALL_SECONDS, NODE, NPM
from tests.e2e.processes import ROOT

FOLDER = ROOT / "build" / "e2e-openapi"
COMPILED = 40


class Published(NamedTuple):
    """A document in a package of npm, and how many of its operations become tools."""

    package: str
    member: str
    sha512: str
    operations: int
    tools: int
    base_url: str = ""


DOCUMENTS = [
    Published(
        "@octokit/openapi@23.0.2",
        "package/generated/api.github.com.json",
        "pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
        operations=1223,
        tools=400,
    ),
    Published(
        "@blockfrost/openapi@0.1.93",
        "package/openapi.yaml",
        "gC0NOZk+9MSa5aK846gbcU12VqbZwzVpZmgO6314e9ExJo9g3QsMmniplewOhI5fJQVHR0A7lgCVqk/pbK1iKA==",
        operations=129,
        tools=127,
    ),
    Published(
        "@figma/rest-api-spec@0.43.0",
        "package/openapi/openapi.yaml",
        "sbFm28WM8MsawyLSYO9Ddne+8xytWU5D7oCOOWyzRvLpd9InFHihC37dQBVJVzAVyT7HpwYtU4wlm+ALogC38g==",
        operations=54,
        tools=54,
    ),
    Published(
        "@directus/specs@15.2.0",
        "package/dist/openapi.json",
        "JauzDjbFbeoZ9AceWh/pbG/U2R2/5V8jP7Ldp/bpSPbsDu392uXEUQGTfWkowLqgRXtjmGHP5vIZoUJpjqaFPw==",
        operations=136,
        tools=135,
        base_url="https://directus.example.com",
    ),
    Published(
        "@digdir/dialogporten-schema@1.40.0",
        "package/swagger.verified.json",
        "NVi1ZkQU4yynmw80Mz+YkG5rLVoOLsB9s5PqXHBnA08WTl2doQWX4aBDCHC29m1C8P6sxPA1dvIGOOrN/h0haw==",
        operations=29,
        tools=29,
        base_url="https://dialogporten.example.com",
    ),
]


def packed(wanted: Published) -> Path:
    """Return the package, downloaded once, after checking that it is the one that was tried."""
    name, _, version = wanted.package.removeprefix("@").replace("/", "-").rpartition("@")
    file = FOLDER / f"{name}-{version}.tgz"
    if not file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [str(NODE), str(NPM), "pack", wanted.package, "--ignore-scripts"],
            cwd=FOLDER,
            env={**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            timeout=INSTALL_SECONDS,
            check=True,
        )
    found = base64.b64encode(hashlib.sha512(file.read_bytes()).digest()).decode()
    assert found == wanted.sha512
    return file


@pytest.mark.parametrize("wanted", DOCUMENTS, ids=lambda wanted: wanted.package)
def test_a_large_document_of_a_public_service_becomes_tools(wanted: Published) -> None:
    with tarfile.open(packed(wanted)) as package:
        member = package.extractfile(wanted.member)
        assert member is not None
        text = member.read()
    found = find(text, Reading(base_url=wanted.base_url))
    ready = [each for each in found.operations if each.url]
    assert (len(found.sources), len(ready)) == (wanted.operations, wanted.tools)
    assert found.left_out == max(0, wanted.operations - MOST_LISTED)
    assert all(each.url or each.operation.problem for each in found.operations)
    chosen = [each.operation.source for each in ready[:: max(1, len(ready) // COMPILED)]]
    again = find(found.kept, Reading(wanted.base_url, sources=chosen), kept=True)
    configs = [each.operation.config for each in again.operations if each.operation.config]
    assert len(configs) == len(chosen)
    for config in configs:
        assert http_kind.compile(config).input_schema["type"] == "object"
