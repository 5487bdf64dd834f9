"""OAuth over HTTP: metadata, and the endpoints that programs use. They answer programs, always in JSON."""
