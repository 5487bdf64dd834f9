"""The audit record: append-only entries, their payloads, and the writer that commits them."""
