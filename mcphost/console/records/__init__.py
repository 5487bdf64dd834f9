"""Pages of the record: lists of calls and changes, one call, one entry."""
