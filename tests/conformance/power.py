"""A power switch for a directory tree: what was not synced is gone when it is thrown.

It keeps, for each file and each directory that is synced, what it held at that moment. The loss of power puts every
file and name back to that. Files stay the same inodes, so that what a store tells by them stays true.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

MOST = 400
"""Syncs after which nobody is going to throw the switch, and watching on would only cost time."""


class Power:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._syncs = 0
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._pinned: dict[int, int] = {}  # open, so that no inode's number is given to another file
        root.mkdir(parents=True)
        self._names[self._pin(root)] = {}

    def sync(self, fd: int) -> None:
        """What is called in place of fsync and fdatasync."""
        self._syncs += 1
        found = os.fstat(fd)
        if self._syncs > MOST or found.st_size > 1 << 20:
            self._syncs = MOST
            return
        if stat.S_ISREG(found.st_mode):
            self._bytes[found.st_ino] = os.pread(fd, found.st_size, 0)
        else:
            here = Path(os.readlink(f"/proc/self/fd/{fd}"))
            if here.is_relative_to(self.root):
                self._names[found.st_ino] = {each.name: self._pin(each) for each in here.iterdir()}

    def lose(self) -> None:
        """Throw the switch."""
        if self._syncs >= MOST:
            raise RuntimeError("the switch was thrown too late: it watches small files for a short time")
        limbo = self.root.with_name(self.root.name + "-limbo")
        limbo.mkdir()
        kept: dict[int, Path] = {}
        for number, path in enumerate(sorted(self.root.rglob("*"), reverse=True)):
            if path.is_dir():
                path.rmdir()
            else:
                inode = path.lstat().st_ino
                kept[inode] = path.rename(limbo / str(number))
        names, self._names = self._names, {}
        self._restore(self.root, self.root.stat().st_ino, names, kept)
        shutil.rmtree(limbo)

    def close(self) -> None:
        for fd in self._pinned.values():
            os.close(fd)
        self._pinned.clear()

    def _restore(self, place: Path, inode: int, names: dict[int, dict[str, int]], kept: dict[int, Path]) -> None:
        for name, entry in names.get(inode, {}).items():
            path = place / name
            if stat.S_ISDIR(os.fstat(self._pinned[entry]).st_mode):
                path.mkdir(mode=0o700)
                self._restore(path, entry, names, kept)
                continue
            if entry in kept:
                kept.pop(entry).rename(path)
            path.touch(mode=0o600)
            path.write_bytes(self._bytes.get(entry, b""))
            self._bytes[path.stat().st_ino] = self._bytes.get(entry, b"")
        self._names[place.stat().st_ino] = {each.name: self._pin(each) for each in place.iterdir()}

    def _pin(self, path: Path) -> int:
        inode = path.lstat().st_ino
        if inode not in self._pinned:
            self._pinned[inode] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        return inode
