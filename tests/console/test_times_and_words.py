"""Tests of times and counts in words."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.console.templatetags.console import (
    coded,
    ended_worker,
    fact_pairs,
    format_sentence,
    nearly,
    when,
)
from mcphost.console.templatetags.questions import (
    delivered,
    delivery,
    known_because,
    known_by,
    outcome_badge,
)
from mcphost.observability.labels import SANDBOX_KILLS
from tests.cast import Cast
from tests.console.conftest import Browser

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("remaining", "expected"),
    [
        (7 * DAY - timedelta(seconds=2), 7 * DAY),
        (90 * DAY - timedelta(seconds=2), 90 * DAY),
        (DAY - timedelta(minutes=1), DAY),
        (7 * DAY - 2 * HOUR, 7 * DAY),
        (2 * DAY - 2 * HOUR, 2 * DAY),
        (DAY + 11 * HOUR, DAY + 11 * HOUR),
        (HOUR - timedelta(seconds=10), HOUR),
        (90 * MINUTE, 90 * MINUTE),
        (5 * MINUTE - timedelta(seconds=1), 5 * MINUTE),
        (timedelta(seconds=20), timedelta(seconds=20)),
    ],
)
def test_a_time_just_below_a_whole_unit_is_called_that_unit(remaining, expected):
    assert nearly(remaining) == expected


def test_what_lasts_a_week_is_not_said_to_last_six_days() -> None:
    assert ">in\u00a01\u00a0week<" in str(when(timezone.now() + 7 * DAY))


def test_weeks_are_said_only_where_they_are_whole() -> None:
    said = {days: str(when(timezone.now() + days * DAY)) for days in (2, 6, 13, 14)}
    for days, words in {
        2: "2\u00a0days",
        6: "6\u00a0days",
        13: "13\u00a0days",
        14: "2\u00a0weeks",
    }.items():
        assert f">in\u00a0{words}<" in said[days]


def test_each_reason_for_the_end_of_a_worker_has_words() -> None:
    for reason in SANDBOX_KILLS:
        assert ended_worker(reason) != reason


@pytest.mark.django_db
def test_connect_offers_to_create_a_token_only_to_members(
    cast: Cast, browse: Browser, staff: Client
) -> None:
    assert "create one below" in browse(cast.owner).get("/admin/t/acme/connect/").content.decode()
    assert "create one below" not in staff.get("/admin/t/acme/connect/").content.decode()


@pytest.mark.parametrize("text_of", [known_because, known_by, delivery, delivered])
def test_texts_about_a_trial_fit_one_of_the_console_and_one_of_the_api(text_of) -> None:
    text = text_of("playground")
    assert "trial" in text
    assert "console" not in text


def test_the_outcome_of_a_round_with_a_question_is_in_words_of_the_console() -> None:
    assert "asked a question" in outcome_badge("input_required")


def test_a_saved_filter_is_named_by_its_labels() -> None:
    facts = {"name": "Mine", "query": "tool=resolve_ticket&principal=mara&outcome=error"}
    assert fact_pairs(facts) == [
        ("filter", "Target resolve_ticket, Caller mara, Outcome error"),
    ]


def test_backticks_make_code_in_a_sentence_and_are_text_in_its_values() -> None:
    shown = format_sentence("The key `{}` of “{}”, “{}”", "k1", "a `b` <c>", coded("`d`"))
    expected = "The key <code>k1</code> of “a `b` &lt;c&gt;”, “<code>d</code>”"
    assert shown == coded(shown) == expected
