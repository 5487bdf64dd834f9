"""The text that a new server prints for the user who started it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from mcphost.console.tenants.clients import snippets
from mcphost.management.demo import DEMO


@dataclass(frozen=True, slots=True)
class Account:
    """An account to sign in with. `password` is empty once it is not the one in `file`."""

    user: str
    password: str
    file: Path


@dataclass(frozen=True, slots=True)
class Welcome:
    """The URLs, accounts and token to print. Without a token there is no demo."""

    base: str
    admin: Account
    auditor: Account
    token: str
    token_file: Path

    @property
    def url(self) -> str:
        return f"{self.base}/t/{DEMO}/mcp"

    def text(self) -> str:
        lines = [
            "",
            *_account("Console", f"{self.base}/admin/", self.admin),
            *_account("Auditor", "same page, may read payloads", self.auditor),
        ]
        if not self.token:
            return "\n".join([*lines, ""])
        lines += [
            f"  Tenant URL   {self.url}",
            f"  Demo token   {self.token}",
            f"               (also in {self.token_file})",
        ]
        for snippet in snippets(DEMO, self.url, self.token):
            lines.append(f"\n  {snippet.title} ({snippet.where})")
            lines.append(indent(snippet.text, "  "))
        return "\n".join([*lines, ""])


def _account(role: str, where: str, account: Account) -> Iterator[str]:
    password = account.password or "(changed by you)"
    yield f"  {role}      {where}   user {account.user}, password {password}"
    yield f"               (the generated password is in {account.file})"
