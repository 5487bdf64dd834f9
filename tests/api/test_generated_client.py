"""A typed client that a public generator makes of the document works against the API."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from tests.api.conftest import ApiClients
from tests.api.samples import SAMPLES
from tests.cast import Cast
from tests.openapi_document import FILE

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
PACKAGE = "generated_api_client"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Generate the client; return the name of its package."""
    folder = tmp_path_factory.mktemp("client")
    config = folder / "config.yml"
    config.write_text("post_hooks: []\n")
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    options = ["--path", str(FILE), "--output-path", str(folder / PACKAGE), "--config", str(config)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=240)
    assert (done.returncode, "WARNING" in done.stdout) == (0, False), done.stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield PACKAGE
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


class DjangoTransport(httpx.BaseTransport):
    """Passes the client's requests to the application, within the test's transaction."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = Client().generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type=request.headers.get("content-type", ""),
            headers={name: text for name, text in request.headers.items() if name != "host"},
        )
        return httpx.Response(
            answer.status_code, headers=dict(answer.items()), content=answer.content
        )


def operation(package: str, name: str) -> Any:
    """Return the function of an operation, which returns the whole response."""
    return import_module(f"{package}.api.tools.{name}").sync_detailed


def test_every_operation_has_a_typed_function(package: str) -> None:
    folder = Path(str(import_module(package).__file__)).parent
    names = {path.stem for path in folder.glob("api/*/*.py")} - {"__init__"}
    document = FILE.read_text()
    assert len(names) == document.count('"operationId"')


@pytest.mark.django_db
def test_the_client_lists_creates_edits_and_reads_problems(
    package: str, cast: Cast, clients: ApiClients
) -> None:
    models = import_module(f"{package}.models")
    client = import_module(f"{package}.client").AuthenticatedClient(
        base_url="http://testserver/api/v1",
        token=cast.owner.api_token,
        httpx_args={"transport": DjangoTransport()},
    )
    listed = operation(package, "list_tools")("acme", client=client)
    assert (listed.status_code, listed.parsed.items, listed.parsed.next_) == (200, [], None)
    body = models.PrimitiveSettings.from_dict(dict(TOOLS.creation))
    created = operation(package, "create_tool")("acme", client=client, body=body)
    assert (created.status_code, created.parsed.name) == (201, TOOLS.creation["name"])
    edit, tool = operation(package, "update_tool"), created.parsed.id
    patch = models.PrimitiveSettingsPatch(title="Edited")
    etag = created.headers["ETag"]
    edited = edit("acme", tool, client=client, body=patch, if_match=etag)
    assert (edited.status_code, edited.parsed.title) == (200, "Edited")
    old = edit("acme", tool, client=client, body=patch, if_match=etag)
    assert isinstance(old.parsed, models.Problem)
    assert (old.status_code, old.parsed.status) == (412, 412)
    assert old.parsed.type_ == "urn:mcphost:problem:precondition-failed"
    client.get_httpx_client().close()
