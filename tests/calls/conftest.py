from tests.audit.conftest import Start, _cipher, clock, failures, gate, start

__all__ = ["Start", "_cipher", "clock", "failures", "gate", "start"]
