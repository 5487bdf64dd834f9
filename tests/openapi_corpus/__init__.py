"""Import a directory of real OpenAPI documents, and have another program validate the requests."""
