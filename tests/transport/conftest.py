from tests.rounds.conftest import asking
from tests.served import offered, served, stopped

__all__ = ["asking", "offered", "served", "stopped"]
