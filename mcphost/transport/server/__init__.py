"""The uvicorn process: its limits on clients, start and graceful shutdown."""
