from tests.rounds.conftest import asking
from tests.served import offered, served

__all__ = ["asking", "offered", "served"]
