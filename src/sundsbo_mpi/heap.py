"""The C library's heap, made ready for an iteration's vectors."""

from __future__ import annotations

import ctypes
import mmap

# Names of glibc's <malloc.h>.
TRIM_THRESHOLD, MMAP_MAX = -1, -4
ROOM = 256 * 2**20
"""Bytes of addresses that shall be in huge pages; memory is taken only where they are touched."""


def prepare_heap() -> None:
    """Let this process keep what it frees, and ask for huge pages; without effect but with glibc.

    By default glibc hands large blocks back to the kernel as soon as they are free.  An iteration
    makes and drops the same few vectors of 1 MB and more, and would find each of their pages anew:
    a tenth of its time.  What start-up has freed is handed back first.

    Whether Linux gives out huge pages to everybody, to those who ask for them, or never, is its
    administrator's choice.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt") and hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
        library.mallopt(MMAP_MAX, 0)
        library.mallopt(TRIM_THRESHOLD, -1)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            _ask_for_huge_pages(library)


def _ask_for_huge_pages(library: ctypes.CDLL) -> None:
    """Ask for them at the top of the heap, from which blocks are cut."""
    library.malloc.restype = ctypes.c_void_p
    block = library.malloc(ctypes.c_size_t(ROOM))
    if block is None:  # the addresses of this process are limited
        return
    begin = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
    inside = ROOM - mmap.PAGESIZE
    library.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(inside), mmap.MADV_HUGEPAGE)
    library.free(ctypes.c_void_p(block))
