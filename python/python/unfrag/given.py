"""What callers give: paths, settings, numbers and moments, brought into the form that the extension takes.

Invariant: what cannot be taken is a ``TypeError`` that says of which parameter, what was expected and what was given.
"""

from __future__ import annotations

import datetime
import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NoReturn, TypeAlias

Path: TypeAlias = str | os.PathLike[str]
#: A moment of a recording: a date, or a time after its beginning (seconds where it is a number).
When: TypeAlias = datetime.datetime | datetime.timedelta | float
#: As the extension has it: whether it is a date, and nanoseconds.
Moment: TypeAlias = tuple[bool, int]

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def wrong(name: str, value: object, expected: str) -> NoReturn:
    """Says what was expected."""
    raise TypeError(f"{name}: {expected} is expected, not {type(value).__name__} ({value!r:.60})")


class Source(os.PathLike[str]):
    """What stands for a file and can say whether that is still the same."""

    def source(self) -> str:
        """Where it is."""
        raise NotImplementedError

    def beside(self) -> tuple[list[str], str | None]:
        """Snapshots that belong to it, and the release of its kernel, where those were said."""
        return ([], None)


def path(name: str, value: object) -> str:
    """A path."""
    if isinstance(value, Source):
        return value.source()
    if isinstance(value, (str, os.PathLike)):
        found = os.fspath(value)
        if isinstance(found, str) and found:
            return found
    wrong(name, value, "a path (str or os.PathLike)")


def recording(value: object, snapshots: object = (), release: object = None) -> tuple[str, list[str], str | None]:
    """A recording: where it is, the snapshots beside it, and the release of its kernel; as given, else as it says."""
    where = path("recording", value)
    beside, of = value.beside() if isinstance(value, Source) else ([], None)
    return (where, paths("snapshots", snapshots) or beside, text_or_none("release", release) or of)


def paths(name: str, value: object) -> list[str]:
    """Paths; a single one is one."""
    if isinstance(value, (str, os.PathLike)):
        return [path(name, value)]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping)):
        return [path(name, v) for v in value]
    wrong(name, value, "a path, or a sequence of paths,")


def words(name: str, value: object) -> list[str]:
    """Texts, in their order; a single one is one."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, (bytes, Mapping, Set)):
        found = list(value)
        for v in found:
            if not isinstance(v, str):
                wrong(name, v, "a str, or a sequence of str,")
        return found
    wrong(name, value, "a str, or a sequence of str,")


#: The largest numbers of so many bits.
U8, U16, U32, U64 = (1 << 8) - 1, (1 << 16) - 1, (1 << 32) - 1, (1 << 64) - 1


def whole(name: str, value: Any, least: int = 0, most: int = U64) -> int:
    """A whole number; those of numpy are some as well.

    Raises:
        ValueError: it is smaller or larger than any that makes sense.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        wrong(name, value, "a whole number")
    if not least <= number <= most:
        raise ValueError(f"{name}={number!s:.60}: a whole number from {least} to {most} is expected")
    return number


def whole_or_none(name: str, value: object, least: int = 0, most: int = U64) -> int | None:
    """A whole number, or ``None``."""
    return None if value is None else whole(name, value, least, most)


def seconds_or_none(name: str, value: object) -> float | None:
    """A number of seconds, or ``None``."""
    if value is None:
        return None
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        wrong(name, value, "a number of seconds")
    return float(value)


def text_or_none(name: str, value: object) -> str | None:
    """A text, or ``None``."""
    if value is None or isinstance(value, str):
        return value
    wrong(name, value, "a str")


def settings(name: str, value: object) -> list[tuple[str, str]]:
    """Sysctls as the command takes them: truth values as 1 and 0, ``None`` as what the kernel computes."""
    if value is None:
        return []
    if not isinstance(value, Mapping):
        wrong(name, value, 'a mapping such as {"vm.min_free_kbytes": 65536}')
    for key in value:
        if not isinstance(key, str):
            wrong(f"a name in {name}", key, "a str")
    return [(key, setting(f"{name}[{key!r}]", of)) for key, of in value.items()]


def setting(name: str, value: Any) -> str:
    """The value of a sysctl."""
    if value is None:
        return "computed"
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return " ".join(setting(name, v) for v in value)
    # A bool of Python and one of numpy.
    if type(value).__name__ in ("bool", "bool_"):
        return str(int(value))
    if hasattr(value, "__index__"):
        return str(operator.index(value))
    if hasattr(value, "__float__") and float(value).is_integer():
        return str(int(float(value)))
    wrong(name, value, "a number, a str, a truth value, a list of numbers or None")


def moment(name: str, value: Any) -> Moment | None:
    """A moment of a recording."""
    if value is None:
        return None
    value = _of_numpy_or_pandas(name, value)
    if isinstance(value, datetime.datetime):
        # One without a zone is by this host's clock.
        since = value.astimezone(datetime.timezone.utc) - _EPOCH
        if since < datetime.timedelta(0):
            raise ValueError(f"{name}: {value} is before 1970")
        return (True, _nanoseconds(since))
    if isinstance(value, datetime.timedelta):
        after = _nanoseconds(value)
    elif isinstance(value, _Nanoseconds):
        after = value.ns
    elif hasattr(value, "__float__") and not isinstance(value, (bool, str)):
        seconds = float(value)
        if not math.isfinite(seconds):
            raise ValueError(f"{name}: {value} is no number of seconds")
        after = round(max(-1.0, min(seconds, 1e12)) * 1e9)
    else:
        wrong(name, value, "a datetime, a timedelta or a number of seconds")
    if after < 0:
        raise ValueError(f"{name}: {value} is before the beginning of the recording")
    if after > U64:
        raise ValueError(f"{name}: {value} is later than any recording's end")
    return (False, after)


class _Nanoseconds:
    """A time after the beginning, from a library whose times are finer than those of Python."""

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __str__(self) -> str:
        return f"{self.ns} ns"


def _of_numpy_or_pandas(name: str, value: Any) -> Any:
    """Times and dates of numpy and pandas as those of Python; a date without a zone stays one."""
    kind = type(value).__name__
    if kind in ("timedelta64", "datetime64", "Timestamp", "Timedelta", "NaTType"):
        if value != value:
            raise ValueError(f"{name}: {value} is no time")
        if kind == "Timestamp":
            return value.to_pydatetime(warn=False)
        if kind == "Timedelta":
            return _Nanoseconds(int(value.as_unit("ns").value))
        if kind == "timedelta64":
            return _Nanoseconds(int(value.astype("timedelta64[ns]").astype("int64")))
        return value.astype("datetime64[us]").item()
    return value


def _nanoseconds(time: datetime.timedelta) -> int:
    return ((time.days * 86_400 + time.seconds) * 1_000_000 + time.microseconds) * 1000


def window(since: When | None, until: When | None) -> tuple[Moment | None, Moment | None]:
    """A window of time."""
    return (moment("since", since), moment("until", until))


def log(value: Any) -> bytes | os.PathLike[str]:
    """A kernel log: its bytes, or where it lies.

    Raises:
        ValueError: a text of one line that is no log, but the name of a file.
    """
    if isinstance(value, Source):
        return PathOf(value.source())
    if isinstance(value, os.PathLike):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        if _looks_like_a_path(value):
            there = "is a file" if os.path.isfile(value) else "looks like the name of a file, and there is none"
            raise ValueError(f"{value!r} {there}: a str is the text of a log; for a file give pathlib.Path({value!r})")
        return value.encode("utf-8", "surrogateescape")
    if callable(getattr(value, "read", None)):
        content = value.read()
        return content.encode("utf-8", "surrogateescape") if isinstance(content, str) else bytes(content)
    wrong("log", value, "a text, bytes, an open file or a pathlib.Path")


class PathOf(os.PathLike[str]):
    """A path that is known to be one."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __fspath__(self) -> str:
        return self._where


def _looks_like_a_path(text: str) -> bool:
    """Whether a text is a name and no log: one word without blanks, or the name of a file that is there."""
    if "\n" in text or not text.strip():
        return False
    return len(text.split()) == 1 or (len(text) < 4096 and os.path.exists(text))


def could_be_a_path(value: object) -> bool:
    """Whether a text of one line could be a path with blanks in it."""
    return isinstance(value, str) and "\n" not in value and (os.sep in value or os.path.splitext(value)[1] != "")


def sequence(name: str, value: object, choices: Sequence[str], least: int = 0) -> list[str]:
    """Words that are among the choices, at least so many."""
    found = words(name, value)
    if len(found) < least:
        raise ValueError(f"{name}: none is given: choose of {', '.join(choices)}")
    for word in found:
        if word not in choices:
            raise ValueError(f"{name}={word!r}: choose of {', '.join(choices)}")
    return found
