"""Every change that run files make to the disk, in order, and what it shows after each of them."""

from __future__ import annotations

import os
from pathlib import Path

from sundsbo_mpi.runfile import disk, placing

FLUSH = None


class LoggedDisk(disk.Disk):
    """Remembers every change and every flush.

    A change is a position and the bytes written there, or None for a truncation.
    """

    def __init__(self, path):
        super().__init__(path)
        self.log = []
        self.synced = 0
        """How long the log was when the disk was last waited for."""

    def write(self, data):
        self.log.append((self.tell(), bytes(data)))
        return super().write(data)

    def truncate(self, size=None):
        self.log.append((self.tell() if size is None else size, None))
        return super().truncate(size)

    def flush(self):
        if not self.closed:
            self.log.append(FLUSH)
        super().flush()

    def sync(self):
        self.synced = len(self.log)
        super().sync()


class Disks:
    """All files that are made; and the lengths of their logs when the last of them was named."""

    def __init__(self, monkeypatch):
        self.made: list[LoggedDisk] = []
        self.published: list[tuple[Path, list[int]]] = []
        monkeypatch.setattr(placing, "Disk", self._make)
        for name in ("replace", "rename", "link"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name)))

    def _make(self, path):
        self.made.append(LoggedDisk(path))
        return self.made[-1]

    def _watched(self, give_name):
        def watched(source, target, **options):
            give_name(source, target, **options)
            if Path(source).name.endswith(".part"):
                self.published.append((Path(target), [len(disk.log) for disk in self.made]))

        return watched


def states(log):
    """Yield the file's bytes after 0, 1, 2, ... changes or flushes."""
    content = bytearray()
    yield bytes(content)
    for change in log:
        if change is not FLUSH:
            position, data = change
            if data is None:
                del content[position:]
            content.extend(bytes(max(position - len(content), 0)))
            content[position : position + len(data or b"")] = data or b""
        yield bytes(content)


def backwards(log):
    """Turn around the order of the changes between one flush and the next."""
    turned, since = [], []
    for change in log:
        if change is FLUSH:
            turned += [*reversed(since), FLUSH]
            since = []
        else:
            since.append(change)
    return turned + since[::-1]
