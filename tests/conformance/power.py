"""A power switch for a directory tree: what was not synced is gone when it is thrown.

It keeps, for each file and each directory that is synced, what it held at that moment. The loss of power puts every
file and name back to that. Files stay the same inodes, so that what a store tells by them stays true.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


class Power:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.syncs = 0
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._pinned: dict[int, int] = {}  # open, so that no inode's number is given to another file
        root.mkdir(parents=True, exist_ok=True)
        self._names[self._pin(root)] = {}

    def sync(self, fd: int) -> None:
        """What is called in place of fsync and fdatasync."""
        self.syncs += 1
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            self._bytes[found.st_ino] = os.pread(fd, found.st_size, 0)
        elif found.st_ino in self._pinned or self._below(fd):
            here = os.readlink(f"/proc/self/fd/{fd}")
            self._names[found.st_ino] = {name: self._pin(Path(here, name)) for name in os.listdir(fd)}

    def lose(self) -> None:
        """Throw the switch."""
        limbo = self.root.with_name(self.root.name + "-limbo")
        limbo.mkdir()
        kept: dict[int, Path] = {}
        for number, path in enumerate(sorted(self.root.rglob("*"), reverse=True)):
            if not path.is_dir():
                kept[path.lstat().st_ino] = path.rename(limbo / str(number))
        for path in sorted(self.root.rglob("*"), reverse=True):
            path.rmdir()
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
                kept[entry].rename(path)
                os.truncate(path, 0)
            path.touch(mode=0o600)
            path.write_bytes(self._bytes.get(entry, b""))
            self._bytes[path.stat().st_ino] = self._bytes.get(entry, b"")
        self._names[place.stat().st_ino] = {each.name: self._pin(each) for each in place.iterdir()}

    def _below(self, fd: int) -> bool:
        return Path(os.readlink(f"/proc/self/fd/{fd}")).is_relative_to(self.root)

    def _pin(self, path: Path) -> int:
        inode = path.lstat().st_ino
        if inode not in self._pinned:
            self._pinned[inode] = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        return inode
