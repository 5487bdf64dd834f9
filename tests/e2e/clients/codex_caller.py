"""Codex, without an account, through its `app-server`. See this folder's docstring for what it reads and writes;
"command" is Codex with the server's URL in its configuration, under the name `it`."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import person

LINE_BYTES = 1 << 24


class AppServer:
    """Requests to `codex app-server`, one at a time, as lines of JSON. A form that it shows is asked."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last = 0

    async def request(self, method: str, **params: Any) -> Any:
        """The result. Raises RuntimeError with the message of an error."""
        self._last += 1
        self._write({"id": self._last, "method": method, "params": params})
        while True:
            message = json.loads(await self._process.stdout.readline())
            if message.get("method") == "mcpServer/elicitation/request":
                answer = await person.answer(message["params"])
                self._write({"id": message["id"], "result": answer})
            elif message.get("id") == self._last and "method" not in message:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]

    def _write(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(f"{json.dumps(message)}\n".encode())

    async def close(self) -> None:
        self._process.stdin.close()
        await self._process.wait()


async def main(url: str, command: list[str], token: str = "") -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "MCPHOST_TOKEN": token},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_BYTES,
    )
    codex = AppServer(process)
    client = {"name": "matrix", "title": "Matrix", "version": "1"}
    await codex.request("initialize", clientInfo=client, capabilities={"experimentalApi": True})
    thread = (await codex.request("thread/start", cwd=str(Path.cwd())))["thread"]["id"]
    it = {"threadId": thread, "server": "it"}

    async def call(tool: str, arguments: dict[str, Any]) -> Any:
        return await codex.request("mcpServer/tool/call", **it, tool=tool, arguments=arguments)

    async def read(uri: str) -> Any:
        return await codex.request("mcpServer/resource/read", **it, uri=uri)

    async def get(prompt: str, arguments: dict[str, str]) -> Any:
        raise NotImplementedError("prompts")

    servers = (await codex.request("mcpServerStatus/list", threadId=thread))["data"]
    tools = [name for server in servers if server["name"] == "it" for name in server["tools"]]
    person.tell(met={"tools": tools})
    await person.call_what_is_wanted(call, read, get)
    await codex.close()


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
