"""The resources of the API, one module each: representations, views, and the services that they call."""
