"""Files that go to workers by their content: :class:`Input`.

A file is named by the hash of its content. A worker that lacks one says so; it is then sent to that machine, where it lies
beside others in one folder (``UNFRAG_CACHE``, or a folder of the user among the temporary files) for all workers there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from . import content as contents
from ._unfrag import UnfragError
from .given import Source


class Input(Source):
    """A file that a sweep sends to its workers, once to each machine. It stands wherever a path does.

    Args:
        path: a recording, a scenario or another file. What a scenario names beside itself is not sent.
    """

    __slots__ = ("_path", "_seen", "digest", "name")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path: Path | None = Path(path)
        #: The hash of its content (SHA-256).
        self.digest = contents.digest(self._path)
        self._seen = _stamp(self._path)
        #: The name of the file.
        self.name = self._path.name

    def __fspath__(self) -> str:
        """Where it lies on this machine."""
        return str(self._path or _place(self.digest, self.name))

    def source(self) -> str:
        """Where it lies on this machine, if it is still what it was.

        Raises:
            UnfragError: its file has changed.
        """
        if self._path and _stamp(self._path) != self._seen and contents.digest(self._path) != self.digest:
            raise UnfragError(f"{self._path} has changed since this Input was made: make another")
        return self.__fspath__()

    def __reduce__(self) -> Any:
        return (_sent, (self.digest, self.name))

    def is_here(self) -> bool:
        """Whether it lies on this machine."""
        return Path(self).exists()

    def content(self) -> bytes:
        """What is in it."""
        return Path(self).read_bytes()

    def __repr__(self) -> str:
        return f"<unfrag.Input {self.name} {self.digest[:16]}>"


def _sent(digest: str, name: str) -> Input:
    """An input on another machine, or in another process."""
    value = Input.__new__(Input)
    value._path, value._seen, value.digest, value.name = None, None, digest, name
    return value


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes with a file, if it is there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns)


def host() -> str:
    """This machine and its folder of inputs, as others name it."""
    return f"{socket.gethostname()}:{_folder()}"


def _folder() -> Path:
    named = os.environ.get("UNFRAG_CACHE")
    if named:
        return Path(named)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"unfrag-{user}"
    # Everybody may make a folder there, and what lies in it is taken for what it is named after.
    found = os.lstat(folder) if os.path.lexists(folder) else None
    if found and (not stat.S_ISDIR(found.st_mode) or found.st_uid not in (user, 0)):
        raise PermissionError(f"{folder} is not this user's own folder: set UNFRAG_CACHE to one")
    return folder


def _place(digest: str, name: str) -> Path:
    return _folder() / digest / name


def store(digest: str, name: str, content: bytes) -> None:
    """Puts an input into the folder of this machine."""
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{name} arrived with another content than it was sent with")
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    # Recordings are for their owner alone.
    write(_place(digest, name), content, mode=0o600)


def write(file: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes a file that is whole or not there, whenever this process is killed.

    It is written under a name that nothing has, so whatever lies beside it stays. The umask is taken off the mode.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".unfrag-{secrets.token_hex(8)}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(descriptor, "wb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        os.replace(beside, file)
    except BaseException:
        os.unlink(beside)
        raise
