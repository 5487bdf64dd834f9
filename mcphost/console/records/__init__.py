"""Pages of the record: lists of calls, the audit log, one call, one entry."""
