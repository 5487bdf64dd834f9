"""Tests of the rule for an address of this server itself: that host and port, and nothing else."""

import pytest

from mcphost.egress.addresses import Target
from mcphost.egress.client import Egress
from mcphost.egress.errors import EgressAddressError
from mcphost.egress.messages import OutgoingRequest
from tests.egress.conftest import answer, policy, running, url

NAME = "self.example"


async def test_only_the_own_host_and_port_may_have_a_private_address() -> None:
    async with running(answer()) as own, running(answer()) as other:
        target = Target.parse(url(own, host=NAME))
        egress = Egress(own_server=target, resolve=lambda _: ["127.0.0.1"])
        try:
            everything = policy(f"http://*:{own.port}", f"http://*:{other.port}")
            response = await egress.send(OutgoingRequest(url(own, host=NAME)), everything)
            assert response.status == 200
            for address in (
                url(other, host=NAME),
                url(own, host="other.example"),
                url(own),
            ):
                with pytest.raises(EgressAddressError, match="no address on the public internet"):
                    await egress.send(OutgoingRequest(address), everything)
        finally:
            await egress.aclose()
        assert len(own.arrived) == 1
        assert other.arrived == []


async def test_the_allowed_hosts_apply_to_the_own_address_too() -> None:
    async with running(answer()) as own:
        egress = Egress(own_server=Target.parse(url(own)))
        try:
            with pytest.raises(EgressAddressError, match="not among the allowed hosts"):
                await egress.send(OutgoingRequest(url(own)), policy("example.com"))
        finally:
            await egress.aclose()


async def test_an_own_name_without_an_address_is_refused() -> None:
    egress = Egress(own_server=Target.parse(f"http://{NAME}"), resolve=lambda _: [])
    try:
        with pytest.raises(EgressAddressError, match="no address"):
            await egress.send(OutgoingRequest(f"http://{NAME}/"), policy(f"http://{NAME}"))
    finally:
        await egress.aclose()
