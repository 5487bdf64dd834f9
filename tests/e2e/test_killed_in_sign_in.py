"""A process is killed between any two steps of a sign-in: the other one goes on with it."""

from itertools import cycle

from tests.e2e.nodes import Service
from tests.e2e.oauth_client import HandmadeClient


def test_a_sign_in_survives_the_process_that_did_each_step(two_nodes: Service) -> None:
    client = HandmadeClient(two_nodes.server)
    steps = (
        *(client.discover, client.register, client.open, client.sign_in, client.read_page),
        *(client.consent, client.redeem, client.use, client.refresh, client.use),
    )
    processes = cycle([(two_nodes.first, two_nodes.second), (two_nodes.second, two_nodes.first)])
    for step, (killed, other) in zip(steps, processes, strict=False):
        # The step before was done by the process that is killed.
        killed.kill()
        two_nodes.proxy.wait_for(other.port)
        step()
        killed.start()
        two_nodes.proxy.wait_for(killed.port, other.port)


def test_a_refresh_whose_answer_was_lost_with_its_process_is_answered_by_the_other(
    two_nodes: Service,
) -> None:
    client = HandmadeClient(two_nodes.server)
    client.connect()
    two_nodes.first.kill()
    two_nodes.proxy.wait_for(two_nodes.second.port)
    lost = client.send_refresh(client.tokens["refresh_token"])
    two_nodes.first.start()
    two_nodes.second.kill()
    two_nodes.proxy.wait_for(two_nodes.first.port)
    repeated = client.send_refresh(client.tokens["refresh_token"])
    assert (lost.status, repeated.status) == (200, 200)
    assert repeated.json["access_token"] == lost.json["access_token"]
    assert repeated.json["refresh_token"] == lost.json["refresh_token"]
    client.tokens = repeated.json
    client.use()
    client.refresh()
    two_nodes.second.start()
