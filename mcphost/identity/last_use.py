"""When tokens were last used: noted at each request, written by the process's housekeeping."""

from typing import Final

from mcphost.audit.last_use import LastUse
from mcphost.identity.models import Token

last_use: Final[LastUse[str]] = LastUse(Token)
