"""One round about to run."""

from dataclasses import dataclass

from mcphost.catalogue.selectors import ToolSnapshot
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.serving.incoming import Incoming


@dataclass(frozen=True, slots=True)
class Turn:
    """Which tool runs, for which call, from which journal, because of which request."""

    incoming: Incoming
    tool: ToolSnapshot
    call: Call
    journal: Journal
