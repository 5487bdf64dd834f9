"""What a new server says to the person who started it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from mcphost.console.clients import snippets
from mcphost.management.demo import DEMO


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
        return f"{self.base}/t/{DEMO}/mcp"

    def text(self) -> str:
        return "\n".join(["", *self._people(), *self._clients(), ""])

    def _people(self) -> Iterator[str]:
        password = self.password or "as you changed it"
        yield f"  Admin        {self.base}/admin/   user {self.user}, password {password}"
        yield f"               (the generated password is in {self.password_file})"
        yield f"  Tenant URL   {self.url}"
        yield f"  Demo token   {self.token}"
        yield f"               (also in {self.token_file})"

    def _clients(self) -> Iterator[str]:
        for snippet in snippets(DEMO, self.url, self.token):
            yield f"\n  {snippet.title} ({snippet.where})"
            yield indent(snippet.text, "  ")
