from uuid import uuid4

import pytest

from mcphost.sealing.tokens import Purpose, Reason, SealError
from mcphost.vault import sealer, selectors
from mcphost.vault.models import TenantSecret

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_token_opens_on_a_node_that_has_not_cached_its_keys(purpose: Purpose) -> None:
    tenant = uuid4()
    token = sealer.seal(purpose, tenant, b"payload")
    selectors.forget_everything()
    assert sealer.unseal(purpose, tenant, token) == b"payload"


def test_a_token_of_another_tenant_or_purpose_is_refused() -> None:
    tenant, other = uuid4(), uuid4()
    token = sealer.seal(Purpose.CURSOR, tenant, b"x")
    sealer.warm(other)
    for purpose, owner in [(Purpose.CURSOR, other), (Purpose.LINK, tenant)]:
        with pytest.raises(SealError) as caught:
            sealer.unseal(purpose, owner, token)
        assert caught.value.reason is Reason.NOT_AUTHENTIC


def test_unsealing_for_a_tenant_without_secrets_is_refused_and_creates_none() -> None:
    token = sealer.seal(Purpose.CURSOR, uuid4(), b"x")
    before = TenantSecret.objects.count()
    with pytest.raises(SealError) as caught:
        sealer.unseal(Purpose.CURSOR, uuid4(), token)
    assert caught.value.reason is Reason.BAD_SALT
    assert TenantSecret.objects.count() == before
