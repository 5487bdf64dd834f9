"""The dictionary that paused scripts are compressed with."""

import base64
import getpass
import re
import socket
import sys
import zlib
from pathlib import Path

import pytest

from mcphost.sandbox.scripts import DICTIONARY, MOST_OWN, packed, unpacked
from tests.sandbox.dictionary import FILE, dictionary, states

LARGEST_WINDOW = 32 * 1024 - 262
"""What zlib uses of a dictionary: its end."""


@pytest.fixture(scope="module")
def samples() -> list[bytes]:
    return states()


def test_it_halves_every_state(samples: list[bytes]):
    for state in samples:
        plain = base64.b64encode(zlib.compress(state, 9))
        assert len(packed(state, DICTIONARY)) < len(plain) / 2


def test_all_of_it_can_be_used():
    assert 0 < len(DICTIONARY) <= LARGEST_WINDOW - MOST_OWN


def test_it_is_what_the_samples_of_this_interpreter_make(samples: list[bytes]):
    """Not byte by byte: states have parts without an order."""
    now = dictionary(samples)
    for state in samples:
        assert len(packed(state, DICTIONARY)) < 1.25 * len(packed(state, now))


def test_it_says_nothing_about_the_machine_that_made_it():
    written = FILE.read_bytes()
    machine = {
        socket.gethostname(),
        str(Path.home()),
        str(Path.cwd()),
        sys.prefix,
        getpass.getuser() + "@",
        "/tmp",
        "/home/",
        "/root",
    }
    named = {each.encode() for each in machine if len(each) > 3}
    assert not [each for each in named if each in written]
    assert not re.findall(rb"[a-z0-9_]+/[a-z0-9_]+/[a-z0-9_]+", written)  # no path of a file
    assert not re.findall(rb"(?:\d{1,3}\.){3}\d{1,3}", written)


def test_a_state_of_another_dictionary_is_refused(samples: list[bytes]):
    with pytest.raises(zlib.error):
        unpacked(packed(samples[0], b"another" + DICTIONARY), DICTIONARY)


def test_a_state_from_before_there_was_a_dictionary_can_be_read(samples: list[bytes]):
    old = base64.b64encode(zlib.compress(samples[0], 6)).decode()
    assert unpacked(old, DICTIONARY) == samples[0]
