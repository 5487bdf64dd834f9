"""Set the probe by which this process finds out that the database is back."""

from mcphost.feed.probing import probe
from mcphost.observability.availability import availability

availability.probe = probe
