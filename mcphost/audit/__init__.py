"""What was done: append-only records, their payloads, and the writer that commits them."""
