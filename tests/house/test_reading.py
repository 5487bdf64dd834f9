import pytest

from tests import reading


@pytest.fixture(scope="module")
def sample() -> list[reading.Line]:
    return reading.lines()


def test_the_sample_is_the_same_for_the_same_code(sample):
    assert len(sample) == reading.LINES
    assert reading.lines() == sample


def test_guesses_are_counted_and_misses_are_shown_with_the_right_place(sample):
    first, second, third = sample = sample[:3]
    guesses = reading.guesses_of(
        f"1 {first.package} {first.file}\n\n2 {second.package.replace('.', '/')}/ other.py\n"
    )
    packages, files, misses = reading.score(sample, guesses)
    assert (packages, files, len(misses)) == (2, 1, 2)
    assert f"guessed {second.package} other.py, is {second.package} {second.file}" in misses[0]
    assert f"guessed - -, is {third.package} {third.file}" in misses[1]


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("home.py", "mcphost"),
        ("serving/legacy/call.py", "serving.legacy"),
        ("management/commands/up.py", "management"),
        ("identity/management/commands/token.py", "identity"),
        ("console/templatetags/questions.py", "console"),
    ],
)
def test_a_package_is_named_as_in_the_file_map(path: str, package: str) -> None:
    assert reading.package_of(reading.ROOT / path) == package
