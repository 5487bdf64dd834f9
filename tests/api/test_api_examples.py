"""The commands of docs/api.md, sent as written: each gets the status that the document shows."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcphost.catalogue import kinds
from tests.api.client import ApiClient
from tests.cast import Cast
from tests.source_files import ROOT

pytestmark = pytest.mark.django_db

BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
OPTIONS = {"-X", "-H", "-d"}


@dataclass
class Curl:
    """A command of curl, and the status that the document shows for it."""

    status: int
    url: str = ""
    method: str = "GET"
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def commands(text: str, variables: dict[str, str]) -> Iterator[Curl]:
    """Yield the commands of a document; variables are replaced as they are when a command is reached."""
    for block in BLOCK.findall(text):
        for match in re.finditer(
            r"^\$ (curl .*?)\nHTTP/1\.1 (\d+) ", block, re.MULTILINE | re.DOTALL
        ):
            line = re.sub(r"\$(API|TOKEN|ID|ETAG)", lambda name: variables[name[1]], match[1])
            words = iter(shlex.split(line.replace("\\\n", " "))[1:])
            command = Curl(int(match[2]))
            for word in words:
                if word == "-i":
                    continue
                if word not in OPTIONS:
                    command.url = word
                elif word == "-X":
                    command.method = next(words)
                elif word == "-d":
                    command.body = next(words).encode()
                else:
                    name, _, value = next(words).partition(": ")
                    command.headers[name] = value
            yield command


def send(command: Curl) -> Any:
    return ApiClient().send(command.method, command.url, command.body, **command.headers)


def test_the_commands_of_the_document_get_the_statuses_that_it_shows(cast: Cast) -> None:
    kinds.discover()
    text = (ROOT / "docs" / "api.md").read_text()
    variables = {"API": "/api/v1", "TOKEN": cast.owner.api_token, "ID": "", "ETAG": '\\"\\"'}
    statuses = []
    for command in commands(text, variables):
        response = send(command)
        statuses.append((response.status_code, command.status, response.content[:200]))
        if "ETag" in response.headers:
            variables["ETAG"] = response.headers["ETag"].replace('"', '\\"')
        if "Location" in response.headers:
            variables["ID"] = response.headers["Location"].rpartition("/")[2]
    assert [status for status, _, _ in statuses] == [shown for _, shown, _ in statuses], statuses
    assert len(statuses) == text.count("$ curl ")
