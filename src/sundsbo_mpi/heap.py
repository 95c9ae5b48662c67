"""What the C library does with memory that an iteration frees."""

from __future__ import annotations

import ctypes

# Names of glibc's <malloc.h>.
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """Let this process keep what it frees for its next vectors; without effect but with glibc.

    By default glibc hands large blocks back to the kernel as soon as they are free.  An iteration
    makes and drops the same few vectors of 1 MB and more, and would find each of their pages anew:
    a tenth of its time.  What start-up has freed is handed back first.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
        library.mallopt(MMAP_MAX, 0)
        library.mallopt(TRIM_THRESHOLD, -1)
