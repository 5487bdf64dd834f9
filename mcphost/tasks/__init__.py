"""Tasks: calls that outlive their request (`io.modelcontextprotocol/tasks`)."""
