"""Clients of the command line that show without an account only whether they are connected: Claude Code and
Gemini CLI. See this folder's docstring for what it reads and writes; "command" is `mcp list` of the client."""

import asyncio
from typing import Any

import person


async def printed(command: list[str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


async def need_account(*_: Any) -> Any:
    raise PermissionError("an account is needed")


async def main(url: str, command: list[str], **_: str) -> None:
    status = await printed(command)
    if "Connected" not in status:
        raise ConnectionError(status)
    person.tell(met={"tools": []})
    await person.call_what_is_wanted(need_account, need_account, need_account)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
