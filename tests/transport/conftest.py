from tests.served import offered, served

__all__ = ["offered", "served"]
