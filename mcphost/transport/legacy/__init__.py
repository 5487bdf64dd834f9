"""HTTP of the session-based revisions: POST, GET and DELETE of `/t/<tenant>/mcp`."""
