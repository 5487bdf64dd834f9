"""`manage.py keys`, as an operator uses it."""

import base64
from collections.abc import Callable
from functools import partial
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from mcphost import home
from mcphost.audit.models import Entry
from mcphost.vault.errors import MasterKeyMismatchError
from mcphost.vault.lifecycle import rotate
from mcphost.vault.management.commands.keys import ACTOR, Command
from mcphost.vault.master import master_key
from mcphost.vault.models import RingKey
from mcphost.vault.services import ensure_ring, ensure_tenant, verify_master_key
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import kek_id, wrappers
from tests.audit.waiting import asked
from tests.vault.rings import add_key, have_waited, states

pytestmark = pytest.mark.django_db(transaction=True)

NEW = bytes(range(32))


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("keys", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def old() -> str:
    return ensure_ring()


@pytest.fixture(autouse=True)
def no_time_is_lost(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make the standby time pass at the first pause; return the pauses in seconds."""
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        have_waited(RingKey.objects.get(state=KeyState.STANDBY).id)

    monkeypatch.setattr(Command, "pause", staticmethod(pause))
    return waited


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], list[str]]:
    """`answers(text)`: answer all prompts so; None is end of input. Returns the prompts."""

    def will_say(text: str | None) -> list[str]:
        questions: list[str] = []

        def said(question: str) -> str:
            questions.append(question)
            if text is None:
                raise EOFError
            return text

        monkeypatch.setattr("builtins.input", said)
        return questions

    return will_say


def test_rotate_waits_until_the_new_key_seals(old: str, no_time_is_lost: list[float]) -> None:
    asked(old)
    said = run("rotate")
    (new,) = set(states()) - {old}
    assert states() == {old: "retiring", new: "active"}
    assert no_time_is_lost
    assert f"Key {new} is created. It becomes active in 5 seconds" in said
    assert f"Key {new} is now the active key." in said
    assert f"Key {old} opens tokens until" in said
    assert "1 call waits for an answer under it" in said


def test_a_second_rotation_is_refused_while_one_is_in_progress_and_allowed_once_it_is_due(
    old: str,
) -> None:
    first = rotate(ACTOR)
    with pytest.raises(CommandError, match=f"in progress: key {first}"):
        run("rotate")
    have_waited(first)
    run("rotate")
    assert sorted(states().values()) == ["active", "retiring", "retiring"]


def test_a_compromised_key_is_replaced_without_waiting(old: str, no_time_is_lost: list[float]):
    add_key("k1", KeyState.RETIRING)
    said = run("rotate", "--compromised")
    (new,) = set(states()) - {old, "k1"}
    assert states() == {old: "retired", new: "active", "k1": "retiring"}
    assert not no_time_is_lost
    assert "refuses tokens sealed under the old key" in said
    assert "Key k1 opens tokens until" in said
    assert "`keys retire k1` retires it at once" in said
    entry = Entry.objects.get(action="key.rotated")
    assert (entry.actor_kind, entry.actor_label) == ("system", "manage.py keys")


def test_retire_asks_for_confirmation_and_shows_the_calls_in_flight(old, answers):
    add_key("k1", KeyState.RETIRING)
    asked("k1")
    questions = answers("n")
    with pytest.raises(CommandError, match="Nothing was changed"):
        run("retire", "k1")
    assert questions == [
        "Retire key k1? 1 call waits for an answer under it: answers to them will be rejected. [y/N] "
    ]
    assert states()["k1"] == "retiring"
    answers("Y")
    assert run("retire", "k1") == "Key k1 is retired: it no longer opens tokens.\n"
    assert states()["k1"] == "retired"
    questions = answers("yes")
    run("retire", rotate(ACTOR))
    assert "Nothing was sealed under it" in questions[0], "a rotation is called off"


def test_destroy_asks_for_confirmation_and_shows_the_calls_in_flight(old, answers):
    add_key("k1", KeyState.RETIRED)
    asked("k1")
    asked("k1")
    questions = answers("")
    with pytest.raises(CommandError, match="Nothing was changed"):
        run("destroy", "k1")
    assert "2 calls wait for an answer under it" in questions[0]
    assert "cannot be undone" in questions[0]
    answers("y")
    assert run("destroy", "k1") == "Key k1 is destroyed.\n"
    assert RingKey.objects.get(pk="k1").wrapped == ""


@pytest.mark.parametrize("verb", ["retire", "destroy"])
def test_without_a_terminal_only_the_yes_option_continues(old, verb, answers):
    add_key("k1", KeyState.RETIRING if verb == "retire" else KeyState.RETIRED)
    questions = answers(None)
    with pytest.raises(CommandError, match="use `--yes`"):
        run(verb, "k1")
    assert questions
    questions.clear()
    run(verb, "k1", "--yes")
    assert not questions
    assert states()["k1"] == ("retired" if verb == "retire" else "destroyed")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retire", "nowhere"], "there is no key 'nowhere'"),
        (["destroy", "nowhere"], "there is no key 'nowhere'"),
        (["retire", "OLD"], "is the active key: rotate"),
        (["destroy", "OLD"], "is the active key: rotate"),
        (["destroy", "k1", "--yes"], "still opens tokens"),
        (["retire", "k2"], "is already retired"),
        (["retire", "k3"], "is already destroyed"),
        (["destroy", "k3"], "is already destroyed"),
    ],
)
def test_impossible_operations_are_refused_with_the_reason_and_without_confirmation(
    old, arguments, said, answers
):
    for name, state in (
        ("k1", KeyState.RETIRING),
        ("k2", KeyState.RETIRED),
        ("k3", KeyState.DESTROYED),
    ):
        add_key(name, state)
    questions = answers("y")
    before = states()
    with pytest.raises(CommandError, match=said):
        run(*(old if each == "OLD" else each for each in arguments))
    assert not questions
    assert states() == before


def test_rewrap_prints_what_was_done_and_the_next_step(old: str, settings: Settings) -> None:
    ensure_tenant(uuid4())
    settings.MCPHOST_NEW_MASTER_KEY = lambda: NEW
    assert "wrapped differently: 2 rows. Run `keys rewrap`." in run("list")
    said = run("rewrap")
    assert "Rewrapped: 1 key and the secrets of 1 tenant, under master key" in said
    assert "make the new key the master key of every process" in said
    assert "Rewrapped: 0 keys and the secrets of 0 tenants" in run("rewrap")


def test_rewrap_asks_for_confirmation_before_it_removes_a_master_key(old, settings, answers):
    before = kek_id(master_key())
    settings.MCPHOST_NEW_MASTER_KEY = lambda: NEW
    run("rewrap")
    settings.MCPHOST_MASTER_KEY, settings.MCPHOST_NEW_MASTER_KEY = lambda: NEW, lambda: b""
    questions = answers("n")
    with pytest.raises(CommandError, match="Nothing was changed"):
        run("rewrap")
    assert before in questions[0]
    assert "processes that have no other one stop working" in questions[0]
    assert "Next:" not in run("rewrap", "--yes")
    assert wrappers(RingKey.objects.get().wrapped) == {kek_id(NEW)}


def test_the_documented_replacement_of_the_master_key_works(tmp_path, settings, monkeypatch):
    """docs/keys.md, "Replace the master key"."""
    monkeypatch.delenv("MCPHOST_MASTER_KEY")
    folder = home.Home(tmp_path)
    settings.MCPHOST_MASTER_KEY = partial(home.read_master_key, folder)
    settings.MCPHOST_NEW_MASTER_KEY = partial(home.read_new_master_key, folder)
    keys = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
    for key, path in zip(keys, (folder.master_key, folder.new_master_key), strict=True):
        path.write_text(key + "\n")
        ensure_ring()
        ensure_tenant(uuid4())
    first = run("rewrap")
    assert "Rewrapped: 1 key and the secrets of 1 tenant, under master key" in first
    with monkeypatch.context() as patch:
        patch.setenv("MCPHOST_NEW_MASTER_KEY_FILE", "/nowhere")
        for key in keys:
            patch.setenv("MCPHOST_MASTER_KEY", key)
            verify_master_key()
    folder.new_master_key.rename(folder.master_key)
    last = run("rewrap", "--yes")
    assert "All keys and secrets are wrapped under master key" in run("list")
    monkeypatch.setenv("MCPHOST_MASTER_KEY", keys[0])
    with pytest.raises(MasterKeyMismatchError, match="restore the master key that belongs to this"):
        verify_master_key()
    assert not [key for key in keys if key in first + last]
