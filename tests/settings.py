"""The product's settings, with a temporary data folder and fixed secrets."""

import os
import tempfile
from pathlib import Path

_home = Path(tempfile.mkdtemp(prefix="mcphost-tests-"))
os.environ["MCPHOST_HOME"] = str(_home)
os.environ["MCPHOST_SECRET_KEY"] = "tests-only-secret-key-tests-only-secret-key"
os.environ["MCPHOST_MASTER_KEY"] = "dGVzdHMtb25seS1tYXN0ZXIta2V5LXRlc3RzLW9ubHk="
os.environ["MCPHOST_TOOLS_PATH"] = str(Path(__file__).parent / "probes")
for _name in [name for name in os.environ if name.startswith("OTEL_")]:
    del os.environ[_name]
os.environ.pop("REDIS_URL", None)
os.environ["DATABASE_URL"] = os.environ.get("TEST_DATABASE_URL", "")

from mcphost.settings import *  # noqa: E402, F403
from mcphost.settings import DATABASES  # noqa: E402

# Threads that tests start close their connections after each piece of work: nothing else would.
DATABASES["default"]["CONN_MAX_AGE"] = 0
if os.environ["DATABASE_URL"]:
    # What tests commit need not survive a loss of power; on SQLite neither (below).
    DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off"
else:
    # Threads share one file, as in production; an in-memory database would be one per connection.
    DATABASES["default"]["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
    DATABASES["default"]["TEST"] = {"NAME": str(_home / "test.sqlite3")}
# Shorter than in production: in tests, a database that is unavailable stays so.
MCPHOST_DATABASE_WAIT_SECONDS = 0.3
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# The same on each database. The queue's tables are there on PostgreSQL, for tests that choose it.
MCPHOST_TASK_ENGINE = "embedded"
