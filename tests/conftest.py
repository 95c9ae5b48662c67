"""What holds for every test: one thread, no window, and examples that do not depend on luck."""

import os

# Before torch, numpy or matplotlib are imported; programs started by a test inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["MPLBACKEND"] = "Agg"

from hypothesis import settings

settings.register_profile(
    "gate", derandomize=True, deadline=None, max_examples=40, database=None, print_blob=False
)
settings.load_profile("gate")
