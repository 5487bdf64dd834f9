from tests.rounds.conftest import asking

__all__ = ["asking"]
