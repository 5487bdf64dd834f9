"""Tests of what the tables refuse to every caller."""

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from mcphost.tenants.models import DeletionError, Membership, Tenant
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def test_a_tenant_cannot_be_deleted_directly_or_by_a_query(cast: Cast) -> None:
    with pytest.raises(DeletionError, match="closed, never deleted"):
        Tenant.objects.get(slug="acme").delete()
    with pytest.raises(DeletionError):
        Tenant.objects.all().delete()
    with pytest.raises(DeletionError):
        Tenant.objects.filter(slug="acme").delete()
    with pytest.raises(ProtectedError):  # even past our refusal
        super(Tenant, Tenant.objects.get(slug="acme")).delete()
    assert Tenant.objects.count() == 3


def test_roles_are_known_and_unique_per_user_and_tenant_and_slugs_are_unique(cast: Cast) -> None:
    for create in (
        lambda: Membership.objects.create(
            user=cast.owner.user, tenant_id=cast.acme.id, role="member"
        ),
        lambda: Membership.objects.create(
            user=cast.staff.user, tenant_id=cast.acme.id, role="emperor"
        ),
        lambda: Tenant.objects.create(slug="acme", title="Other"),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            create()


def test_deleting_a_user_keeps_the_tenant(cast: Cast) -> None:
    cast.owner.user.delete()
    assert Tenant.objects.filter(slug="acme").exists()
    assert not Membership.objects.filter(tenant_id=cast.acme.id, role="owner").exists()
