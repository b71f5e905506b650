"""What is known by content and not by path: the digests of files, directories and functions.

Invariant: the same digest means the same bytes under the same names; a file that is not there has a digest of its own.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import _unfrag

#: Digits of a digest that names something.
_DIGITS = 16

_LIVE, _MISSING = "live", "missing"

#: How a scenario names a file beside itself: a profile that was recorded, as TOML.
_PROFILE = re.compile(r"""profile\s*=\s*["']([^"']+)["']""")


def digest(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, or of the names and contents of all files of a directory.

    Raises:
        OSError: it cannot be read.
    """
    where = Path(path)
    if not where.is_dir():
        return _of_file(where)
    whole = hashlib.sha256()
    for file in sorted(p for p in where.rglob("*") if p.is_file()):
        whole.update(f"{file.relative_to(where).as_posix()} {_of_file(file)}\n".encode())
    return whole.hexdigest()


def digest_of_all(paths: Sequence[str]) -> str:
    """The SHA-256 of one, or of several together."""
    all_of = [digest(p) for p in paths]
    return all_of[0] if len(all_of) == 1 else hashlib.sha256("\n".join(all_of).encode()).hexdigest()


def _of_file(path: Path) -> str:
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            hashed.update(part)
    return hashed.hexdigest()


def of_input(path: str | os.PathLike[str]) -> str:
    """A short digest of an input, and of the files that it names beside itself. What cannot be read has none, and neither has
    this host as it is at the moment."""
    where = Path(path)
    if where.parts[:2] in ((os.sep, "proc"), (os.sep, "sys"), (os.sep, "dev")):
        return _LIVE
    try:
        of = [digest(where), *(digest(beside) for beside in _named_in(where))]
    except OSError as e:
        return f"{_MISSING}: {type(e).__name__}"
    return of[0][:_DIGITS] if len(of) == 1 else _joined(of)


def is_known(of: str) -> bool:
    """Whether a digest of :func:`of_input` is one."""
    return of != _LIVE and not of.startswith(_MISSING)


def _named_in(scenario: Path) -> Iterator[Path]:
    """The files beside a scenario that it names."""
    if scenario.suffix == ".toml" and scenario.is_file():
        for name in sorted(set(_PROFILE.findall(scenario.read_text("utf-8", "replace")))):
            beside = scenario.parent / name
            if beside.is_file():
                yield beside


def _joined(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


@functools.cache
def build() -> str:
    """What tells this build of the package from others, of the same version too."""
    return digest(_unfrag.__file__)[:_DIGITS]


def of_function(function: Callable[..., Any]) -> str:
    """A short digest of what a function does, as far as its own code says; of one of this package, of its build."""
    if getattr(function, "__module__", "").split(".")[0] == __name__.split(".")[0]:
        return build()
    if isinstance(function, functools.partial):
        return _joined([of_function(function.func), repr(function.args), repr(sorted(function.keywords.items()))])
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return _joined(_of_code(code)) if code else "unknown"


def _of_code(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _of_code(constant)
        elif isinstance(constant, frozenset):
            # Its order is another one in each process.
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)
