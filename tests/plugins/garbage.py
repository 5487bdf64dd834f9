"""Collect garbage seldom: thousands of tests and modules are loaded once and never freed.

Looking through them again and again takes a third of the time of the collection of tests.
"""

import gc

gc.set_threshold(50_000, 20, 50)  # as in `manage.py serve`


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
