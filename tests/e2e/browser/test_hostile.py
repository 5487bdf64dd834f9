"""Hostile text in a browser: no page runs it, and the policy has nothing to stop."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from tests.e2e.browser.conftest import Visit
from tests.e2e.browser.test_axe import _pages
from tests.e2e.processes import Server

HOSTILE: Final = (
    "\"'><img src=x onerror=canary=1><script>canary=1</script><b style=color:red>\u202e\u200b"
)
PLANTED: Final = {
    "catalogue_primitive": ("title", "description"),
    "catalogue_primitiveversion": ("note", "published_by"),
    "tenants_tenant": ("title", "instructions"),
    "identity_token": ("name", "issued_by"),
    "audit_entry": ("actor_label", "target", "client_name", "client_version", "reason", "source"),
    "auth_user": ("first_name", "last_name"),
}
"""Columns of what comes from outside, by their table."""
LISTEN: Final = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@contextmanager
def planted(server: Server) -> Iterator[None]:
    """Make these columns hostile in all rows, and undo it: other tests have the same server."""
    with closing(sqlite3.connect(server.home / "db.sqlite3", timeout=20)) as database:
        undo = [
            (table, column, row)
            for table, columns in PLANTED.items()
            for column in columns
            for row in database.execute(f"SELECT {column}, rowid FROM {table}")
        ]
        with database:
            for table, column in {each[:2] for each in undo}:
                database.execute(f"UPDATE {table} SET {column} = ?", (HOSTILE,))
        try:
            yield
        finally:
            with database:
                for table, column, row in undo:
                    database.execute(
                        f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                        row,
                    )


def test_hostile_text_runs_nowhere_and_violates_no_policy(visit: Visit, server: Server) -> None:
    page = visit("admin")
    page.add_init_script(LISTEN)
    pages = _pages(page)
    wrong, shown = [], 0
    with planted(server):
        for path in pages:
            page.goto(path)
            ran = page.evaluate("[...(window.canary ? ['it ran'] : []), ...window.violations]")
            wrong += [(path, each) for each in ran]
            shown += "⟨U+202E⟩" in page.content()
    assert wrong == []
    assert shown > 20
