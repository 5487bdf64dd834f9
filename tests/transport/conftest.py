from tests.served import served

__all__ = ["served"]
