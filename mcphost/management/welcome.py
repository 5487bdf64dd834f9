"""What a new server says to the person who started it."""

from dataclasses import dataclass
from pathlib import Path

PYTHON_CLIENT = """\
  import asyncio, mcp.client.streamable_http as http; from mcp.client import Client
  headers = {{"Authorization": "Bearer {token}"}}
  async def main():
      async with Client(http.streamable_http_client("{url}", http_client=http.create_mcp_http_client(headers))) as client: print(await client.call_tool("echo", {{"text": "hello"}}))
  asyncio.run(main())"""


@dataclass(frozen=True, slots=True)
class Welcome:
    """Where to go. `password` is empty once the administrator has changed it."""

    base: str
    user: str
    password: str
    password_file: Path
    token: str
    token_file: Path

    @property
    def url(self) -> str:
        return f"{self.base}/t/demo/mcp"

    def text(self) -> str:
        return "\n".join(["", *self._people(), "", *self._clients(), ""])

    def _people(self) -> list[str]:
        password = self.password or "as you changed it"
        return [
            f"  Admin        {self.base}/admin/   user {self.user}, password {password}",
            f"               (the generated password is in {self.password_file})",
            f"  Tenant URL   {self.url}",
            f"  Demo token   {self.token}",
            f"               (also in {self.token_file})",
        ]

    def _clients(self) -> list[str]:
        header = f"Authorization: Bearer {self.token}"
        server = f'{{"url":"{self.url}","headers":{{"Authorization":"Bearer {self.token}"}}}}'
        typed = f'{{"name":"demo","type":"http",{server[1:]}'
        return [
            "  Claude Code",
            f'  claude mcp add --transport http demo {self.url} --header "{header}"',
            "",
            "  VS Code",
            f"  code --add-mcp '{typed}'",
            "",
            "  Cursor (~/.cursor/mcp.json)",
            f'  {{"mcpServers":{{"demo":{server}}}}}',
            "",
            "  Python (pip install mcp)",
            PYTHON_CLIENT.format(url=self.url, token=self.token),
        ]
