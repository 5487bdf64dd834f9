"""Lists of the record, with what tasks, tenants and tools know of each row: for the console and the API."""
