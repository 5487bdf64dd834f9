"""The kind `http`: tools that are requests to an HTTP API."""
