import asyncio
from uuid import UUID, uuid4

import pytest
from django.db import connections

from mcphost.sealing.tokens import LIMITS, Purpose, Reason, SealError, key_id
from mcphost.vault import sealer, selectors
from mcphost.vault.models import RingKey, TenantSecret

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_token_opens_on_a_node_that_never_saw_it(purpose: Purpose) -> None:
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


def test_a_token_for_a_tenant_without_secrets_is_refused_and_makes_none() -> None:
    token = sealer.seal(Purpose.CURSOR, uuid4(), b"x")
    before = TenantSecret.objects.count()
    with pytest.raises(SealError) as caught:
        sealer.unseal(Purpose.CURSOR, uuid4(), token)
    assert caught.value.reason is Reason.BAD_SALT
    assert TenantSecret.objects.count() == before


def test_what_is_at_hand_seals_with_the_key_it_names_without_a_query(django_assert_num_queries):
    tenant = uuid4()
    assert not sealer.is_warm(tenant)
    assert sealer.cached(tenant) is None
    fetched = sealer.fetch(tenant)
    assert sealer.is_warm(tenant)
    with django_assert_num_queries(0):
        assert sealer.cached(tenant) == fetched
        tokens = {sealer.seal(Purpose.STATE, tenant, b"x") for _ in range(20)}
        assert len(tokens) == 20, "no two are alike"
        assert {sealer.unseal(Purpose.STATE, tenant, token) for token in tokens} == {b"x"}
    selectors.forget_everything()
    with django_assert_num_queries(0):  # it goes on with what it holds
        token = fetched.seal(Purpose.STATE, b"x")
        assert fetched.unseal(Purpose.STATE, token) == b"x"
    assert key_id(token) == fetched.key_id == RingKey.objects.get().id
    for secret in (fetched.salt, fetched.ring.active.secret):
        assert repr(secret) not in repr(fetched)


async def test_a_warm_sealer_works_on_the_event_loop() -> None:
    def warm(tenant: UUID) -> None:
        try:
            sealer.warm(tenant)
        finally:
            connections.close_all()

    tenant = uuid4()
    await asyncio.to_thread(warm, tenant)
    token = sealer.seal(Purpose.STATE, tenant, b"x")
    assert sealer.unseal(Purpose.STATE, tenant, token) == b"x"


def test_the_cap_of_a_purpose_holds_and_can_be_set() -> None:
    tenant = uuid4()
    large = bytes(LIMITS[Purpose.STATE])
    with pytest.raises(SealError) as caught:
        sealer.seal(Purpose.STATE, tenant, large)
    assert caught.value.reason is Reason.TOO_LARGE
    token = sealer.seal(Purpose.STATE, tenant, large, limit=100_000)
    assert sealer.unseal(Purpose.STATE, tenant, token, limit=100_000) == large
    with pytest.raises(SealError):
        sealer.unseal(Purpose.STATE, tenant, token)
