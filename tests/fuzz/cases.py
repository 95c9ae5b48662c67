"""How many bad inputs of each kind are tried, and which, as the environment says."""

import os

from hypothesis import settings

COUNT = int(os.environ.get("FUZZ_CASES", "100"))
SEED = int(os.environ.get("FUZZ_SEED", "0"))

many = settings(max_examples=COUNT)
"""For the tests by hypothesis."""
