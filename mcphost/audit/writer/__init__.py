"""Group commit: one thread per process commits the records of many requests in one transaction."""
