"""The MCP Inspector's command line, started anew for everything that is wanted. See this folder's docstring for
what it reads and writes; "command" is the Inspector with the server's URL, token and era."""

import asyncio
import json
from typing import Any

import person


async def printed(command: list[str], *words: str) -> Any:
    """What the Inspector prints as the result. Raises RuntimeError with what it says if there is none."""
    process = await asyncio.create_subprocess_exec(
        *command, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    if not output.strip():
        raise RuntimeError(errors.decode())
    return json.loads(output)["result"]


async def main(url: str, command: list[str], token: str = "") -> None:
    async def call(tool: str, arguments: dict[str, Any]) -> Any:
        named = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return await printed(command, "--method", "tools/call", *named)

    async def read(uri: str) -> Any:
        return await printed(command, "--method", "resources/read", "--uri", uri)

    async def get(prompt: str, arguments: dict[str, str]) -> Any:
        pairs = [f"{name}={value}" for name, value in arguments.items()]
        named = ("--prompt-name", prompt, "--prompt-args", *pairs)
        return await printed(command, "--method", "prompts/get", *named)

    listed = await printed(command, "--method", "tools/list")
    person.tell(met={"tools": [tool["name"] for tool in listed["tools"]]})
    await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
