"""One round about to run."""

from typing import NamedTuple

from mcphost.catalogue.selectors import ToolSnapshot
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.serving.incoming import Incoming


class Turn(NamedTuple):
    """Which tool runs, for which call, from which journal, because of which request."""

    incoming: Incoming
    tool: ToolSnapshot
    call: Call
    journal: Journal
