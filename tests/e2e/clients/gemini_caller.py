"""Gemini CLI, which without an account only connects. See this folder's docstring for what it reads and
writes; "command" is Gemini CLI."""

import asyncio
import os
from typing import Any

import person


async def printed(command: list[str], *words: str) -> str:
    """What the command prints. Servers of the user's settings are used in a folder that is trusted only."""
    process = await asyncio.create_subprocess_exec(
        *command,
        *words,
        env={**os.environ, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


async def need_account(*_: Any) -> Any:
    raise PermissionError("an account is needed")


async def main(url: str, token: str, command: list[str]) -> None:
    header = f"Authorization: Bearer {token}"
    added = ("mcp", "add", "--scope", "user", "--transport", "http", "-H", header, "it", url)
    await printed(command, *added)
    status = await printed(command, "mcp", "list")
    if "Connected" not in status:
        raise ConnectionError(status)
    person.tell(met={"tools": []})
    await person.call_what_is_wanted(need_account, need_account, need_account)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
