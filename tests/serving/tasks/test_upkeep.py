"""The metric of verification: how many payloads differ from their records."""

import pytest

from mcphost.audit.models import Payload, Verification
from mcphost.observability import counters
from mcphost.serving.tasks import upkeep
from tests.audit.test_verification import change, recorded

pytestmark = pytest.mark.django_db


def test_modified_payloads_are_counted_until_they_are_restored() -> None:
    first, _ = recorded(2)
    kept = Payload.objects.values_list("ciphertext", flat=True).get(entry=first)
    for ciphertext, wrong in ((bytes(40), 1), (kept, 0)):
        change(first, ciphertext=ciphertext)
        Verification.objects.all().delete()  # as if it were time for the next pass
        for _ in range(10):  # a slow machine needs several runs for a pass
            assert upkeep.run((upkeep._verify_payloads,)) == ""
            if Verification.objects.get().ended_at is not None:
                break
        assert counters.payloads_wrong.value == wrong
