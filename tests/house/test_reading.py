from tests import reading


def test_the_sample_is_the_same_for_the_same_code():
    assert len(reading.lines()) == reading.LINES
    assert reading.lines() == reading.lines()


def test_guesses_are_counted():
    first, second, *_ = sample = reading.lines()
    guesses = f"1 {first.package} {first.file}\n2 {second.package} other.py\n3 nowhere other.py\n"
    assert reading.score(sample, guesses) == (2, 1)
