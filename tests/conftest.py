"""What holds for every test: one thread, no window, and examples that do not depend on luck."""

import gc
import os
import signal

# Before torch, numpy or matplotlib are imported; programs started by a test inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "Agg"

import pytest
from hypothesis import settings

settings.register_profile(
    "gate", derandomize=True, deadline=None, max_examples=40, database=None, print_blob=False
)
settings.load_profile("gate")

# Tests that run side by side have been given a terminal's width and height.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# Whoever runs the tests in the background has had these ignored, which programs would inherit.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect garbage once when all tests are known, and leave them out of all later passes.

    There are half a million objects; looking through them took 17 s of the tests of growth alone.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
