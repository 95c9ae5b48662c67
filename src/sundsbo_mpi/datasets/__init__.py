"""Images with labels, and images by class: read from files, checked, and divided at random.

Nothing here imports torch; scikit-learn, which takes seconds, is imported when digits are loaded.
"""

from __future__ import annotations

from sundsbo_mpi.datasets.loading import (
    CHARACTER_SETS,
    DATASETS,
    load_characters,
    load_dataset,
)
from sundsbo_mpi.datasets.samples import CharacterSet, Dataset, Samples

__all__ = [
    "CHARACTER_SETS",
    "DATASETS",
    "CharacterSet",
    "Dataset",
    "Samples",
    "load_characters",
    "load_dataset",
]
