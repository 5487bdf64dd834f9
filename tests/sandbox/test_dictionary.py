"""The dictionary that paused scripts are compressed with."""

import base64
import zlib

import pytest

from mcphost.sandbox.scripts import DICTIONARY, packed, unpacked
from tests.sandbox.dictionary import dictionary, states

"""What zlib uses of a dictionary: its end."""


@pytest.fixture(scope="module")
def samples() -> list[bytes]:
    return states()


def test_the_dictionary_halves_the_size_of_every_state(samples: list[bytes]):
    for state in samples:
        plain = base64.b64encode(zlib.compress(state, 9))
        assert len(packed(state, DICTIONARY)) < len(plain) / 2


def test_the_dictionary_compresses_as_well_as_one_built_from_this_interpreter(samples: list[bytes]):
    """Not byte by byte: states have parts without an order."""
    now = dictionary(samples)
    for state in samples:
        assert len(packed(state, DICTIONARY)) < 1.25 * len(packed(state, now))


def test_a_state_compressed_with_another_dictionary_is_refused(samples: list[bytes]):
    with pytest.raises(zlib.error):
        unpacked(packed(samples[0], b"another" + DICTIONARY), DICTIONARY)
