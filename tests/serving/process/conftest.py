from tests.serving.tasks.conftest import tasks

__all__ = ["tasks"]
