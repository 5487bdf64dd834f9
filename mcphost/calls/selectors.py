"""Reading what is under way, always as one tenant's."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from mcphost.calls.models import Claim
from mcphost.calls.states import ClaimState
from mcphost.feed import nodes

LEASE: Final = timedelta(seconds=15)
"""How long a claim is its owner's without a sign of life."""

_LAPSED = ExpressionWrapper(Q(taken_at__lte=Now() - LEASE), output_field=BooleanField())


@dataclass(frozen=True, slots=True)
class Found:
    """A claim that somebody made. `silent`: for as long as its lease, nobody has heard of its owner.

    `outcome` is what was kept at its end, opaque.
    """

    answers: str
    state: ClaimState
    owner: UUID
    epoch: int
    nonce: str
    outcome: str
    lapsed: bool
    silent: bool


def claim(call: UUID, number: int, tenant: UUID) -> Found | None:
    """The claim of a round, if there is one and it is of `tenant`."""
    mine = Claim.objects.filter(call=call, round=number, tenant=tenant)
    row = mine.annotate(lapsed=_LAPSED).first()
    if row is None:
        return None
    return Found(
        row.answers,
        ClaimState(row.state),
        row.owner,
        row.epoch,
        row.nonce,
        row.outcome,
        row.lapsed,
        row.lapsed and not nodes.lives(row.owner),
    )
