"""Recordings as objects: :class:`Recording`, its :class:`Table` of events, and how recordings are made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from . import _unfrag, content, given, questions
from .errors import UnfragError
from .given import Path, Source, When
from .optional import library
from .questions import Means, Settings
from .results import Diagnosis, Inspection

if TYPE_CHECKING:
    import pathlib
    from types import TracebackType

    import pandas
    import polars
    import pyarrow

#: What a time is in a table: a duration of nanoseconds, or a number of them.
Time: TypeAlias = Literal["duration", "ns"]


class Table:
    """A table in Arrow's layout (``__arrow_c_stream__``).

    ``pandas.DataFrame.from_arrow``, ``polars.DataFrame``, ``pyarrow.table`` and DuckDB take it as it is.
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: _unfrag.Stream) -> None:
        self._stream = stream

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._stream.column_names

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._stream)

    def to_arrow(self) -> pyarrow.Table:
        """The same as a ``pyarrow.Table``, without a copy."""
        table: pyarrow.Table = library("pyarrow").table(self._stream)
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a ``pandas.DataFrame``; names are categories, times ``timedelta64[ns]``."""
        library("pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The same as a ``polars.DataFrame``."""
        frame: polars.DataFrame = library("polars").DataFrame(self._stream)
        return frame

    def __repr__(self) -> str:
        columns = ", ".join(self.column_names)
        shown = columns if len(columns) <= 120 else columns[:119] + "…"
        return f"<unfrag.Table {len(self)} rows: {shown}>"


class Recording(Source):
    """A recording: events, snapshots of procfs, and what is known of the host.

    It stands wherever a question takes a path, and each question about recordings is a method: ``recording.replay(...)`` is
    ``unfrag.replay(recording, ...)``. It is known by its content: where the file has changed since it was opened, a question
    is an error. A copy in another process is opened there, and checked likewise.

    Args:
        path: an .unfrag file, a directory of segments, or a raw trace with ``snapshots`` beside it.
        snapshots: directories or archives of procfs copies, where ``path`` is a trace.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.

    Raises:
        UnfragError: it cannot be read; a ``FileNotFoundError`` too where it is not there.
    """

    __slots__ = ("_inner", "_path", "_release", "_snapshots", "digest")

    def __init__(self, path: Path, *, snapshots: Path | Sequence[Path] = (), release: str | None = None) -> None:
        self._path = os.path.abspath(given.path("path", path))
        self._snapshots = [os.path.abspath(p) for p in given.paths("snapshots", snapshots)]
        self._release = given.text_or_none("release", release)
        self._inner: _unfrag.Recording | None = _unfrag.Recording(
            self._path, snapshots=list(self._snapshots), release=self._release
        )
        #: The SHA-256 of its content.
        self.digest = self._digest()

    replay = questions.replay
    summary = questions.summary
    blame = questions.blame
    wakes = questions.wakes
    forecast = questions.forecast
    profile = questions.profile
    slab = questions.slab

    def doctor(
        self,
        *,
        snapshot: str | None = None,
        seconds: float = 1.0,
        need: str | Sequence[str] = (),
        huge: int | None = None,
        after: Means | Sequence[Means] = (),
        since: When | None = None,
        until: When | None = None,
    ) -> Diagnosis:
        return questions.doctor(
            self, snapshot=snapshot, seconds=seconds, need=need, huge=huge, after=after, since=since, until=until
        )

    def inspect(
        self, *, snapshot: str | None = None, since: When | None = None, until: When | None = None
    ) -> Inspection:
        return questions.inspect(self, snapshot=snapshot, since=since, until=until)

    # Their first parameter has a default, so type checkers would not take them as methods.
    doctor.__doc__ = questions.doctor.__doc__
    inspect.__doc__ = questions.inspect.__doc__

    @property
    def _open(self) -> _unfrag.Recording:
        if self._inner is None:
            raise ValueError(f"{self._path}: this recording is closed")
        return self._inner

    def close(self) -> None:
        """Lets go of its events. Tables that were taken stay."""
        self._inner = None

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def beside(self) -> tuple[list[str], str | None]:
        """Snapshots that belong to it, and the release of its kernel, where those were said."""
        return (list(self._snapshots), self._release)

    def _digest(self) -> str:
        return content.digest_of_all([self._path, *self._snapshots])

    def source(self) -> str:
        """Where it is, if it is still what was opened.

        Raises:
            UnfragError: its file has changed.
        """
        _ = self._open
        if self._digest() != self.digest:
            raise UnfragError(f"{self._path} has changed since it was opened: open it again")
        return self._path

    def __fspath__(self) -> str:
        return self._path

    def __reduce__(self) -> Any:
        return (_opened, (self._path, self._snapshots, self._release, self.digest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recording) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def path(self) -> pathlib.Path:
        """Where it was read from."""
        import pathlib

        return pathlib.Path(self._path)

    @property
    def kernel_release(self) -> str:
        """``uname -r`` of the recorded kernel; empty if unknown."""
        return self._open.kernel_release

    @property
    def page_size(self) -> int:
        """Bytes in a page."""
        return self._open.page_size

    @property
    def cpus(self) -> int:
        """CPUs of the host."""
        return self._open.cpus

    @property
    def format(self) -> str:
        """The format that it was read from."""
        return self._open.source

    @property
    def facts(self) -> dict[str, str]:
        """Further facts of the recorder, by name."""
        return self._open.facts

    @property
    def metadata(self) -> dict[str, str]:
        """What is known of the host and of the recording, by name. Each table has it as the metadata of its schema."""
        return self._open.metadata

    @property
    def snapshots(self) -> list[str]:
        """Names of the snapshots, in the order of time."""
        return self._open.snapshots

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """Kinds of events, with the number of each."""
        return self._open.kinds

    def snapshot(self, name: str, file: str) -> bytes:
        """A file of a snapshot, such as ``buddyinfo``.

        Raises:
            KeyError: there is no such snapshot, or no such file in it.
        """
        return self._open.snapshot(name, file)

    def files(self, name: str | None = None, *, time: Time = "duration") -> Table:
        """The files of the snapshots, or those that are called ``name``.

        Columns: snapshot, file, begin and end of its reading on the clock of the events (null where that is not known), and
        content. Content is not copied, but for page flags, which are packed in a recording.

        Args:
            name: such as ``"buddyinfo"``.
            time: as of :meth:`events`.

        Raises:
            KeyError: no snapshot has such a file.
        """
        return Table(self._open.files(name, time))

    def events(self, *, time: Time = "duration") -> Table:
        """All events: time of the trace clock, CPU, name and process id of the task, flags, preemption count, and kind.

        Args:
            time: ``"duration"``, or ``"ns"`` for a signed number of nanoseconds, which DuckDB needs (its intervals end at
                microseconds).
        """
        return Table(self._open.events(time))

    def table(self, kind: str, *, time: Time = "duration") -> Table:
        """The events of one kind, such as ``kmem:mm_page_alloc``: their time, CPU and task, and their own fields.

        A field that is called as one of the first columns has ``own_`` before its name, such as ``own_comm``.

        Args:
            kind: with its subsystem or without.
            time: as of :meth:`events`.

        Raises:
            KeyError: there are no events of this kind; the error names all.
        """
        return Table(self._open.table(kind, time))

    def __len__(self) -> int:
        return len(self._open)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        if self._inner is None:
            return f"<unfrag.Recording {self._path}: closed>"
        return (
            f"<unfrag.Recording {self._path}: {len(self)} events, {len(self.snapshots)} snapshots, {self.cpus} CPUs, "
            f"kernel {self.kernel_release}>"
        )


def _opened(path: str, snapshots: Sequence[str], release: str | None, digest: str) -> Recording:
    """A recording that another process has."""
    found = Recording(path, snapshots=snapshots, release=release)
    if found.digest != digest:
        raise UnfragError(f"{path} is not the recording that was sent: its content is another one")
    return found


def import_(
    trace: Path,
    output: Path,
    *,
    snapshots: Path | Sequence[Path] = (),
    release: str | None = None,
    settings: Settings | None = None,
) -> Recording:
    """Puts a trace and the procfs snapshots beside it into one .unfrag file.

    Args:
        trace: a trace.dat of trace-cmd, a perf.data, or text of either or of the kernel's trace_pipe.
        output: the file to write.
        snapshots: directories or tar archives of dated procfs copies.
        release: ``uname -r`` of the recorded kernel, where neither trace nor snapshots say.
        settings: sysctls that the recorded host had, where its snapshots do not show them.

    Returns:
        The recording, opened.

    Raises:
        UnfragError: an input cannot be read, or the file not be written.
    """
    source, to = given.path("trace", trace), given.path("output", output)
    beside = given.paths("snapshots", snapshots)
    if os.path.exists(to) and any(os.path.exists(p) and os.path.samefile(p, to) for p in (source, *beside)):
        raise ValueError(f"{to} is the file that is read: write to another one")
    _unfrag.import_trace(
        source, to, beside, given.text_or_none("release", release), given.settings("settings", settings)
    )
    return Recording(to)


def record(
    command: str | Sequence[str] | None = None,
    *,
    output: Path = "recording.unfrag",
    system: bool = False,
    seconds: float | None = None,
    slab: bool = False,
    processes: bool = False,
    stacks: bool = False,
    events: str | Iterable[str] = (),
    anonymous: bool = False,
    command_line: bool = False,
    buffer: int | None = None,
) -> Recording:
    """Records a command, or this whole host, into a file. Needs root.

    A process of its own records, so that it ends well whatever becomes of this one; Ctrl-C ends the recording.

    Args:
        command: the command and its words, which only it and what it starts is traced of; ``None`` with ``system``.
        output: the file to write.
        system: record the whole host: while the command runs, or for ``seconds``, or until Ctrl-C.
        seconds: how long, without a command.
        slab: record what slab caches allocate and free, too: several times as many events.
        processes: record which process did what, too.
        stacks: record kernel stacks of large requests, of wake-ups of kswapd and kcompactd, and of compaction, too.
        events: further events, such as ``"writeback:writeback_start"``.
        anonymous: keep neither names nor numbers of processes.
        command_line: keep the words of the command, too.
        buffer: bytes of the ring buffer of each CPU.

    Returns:
        The recording, opened; ``facts`` has what is known of how it was made.

    Raises:
        UnfragError: a right is missing, the command cannot be started, or the file not be written.
    """
    from .recorder import run

    words = [] if command is None else given.words("command", command)
    if not words and not system:
        raise ValueError("give a command, or system=True for the whole host")
    if words and seconds is not None:
        raise ValueError("seconds= is for a recording without a command: a command ends it by its own end")
    if anonymous and (processes or stacks or command_line):
        raise ValueError("anonymous= leaves out what processes=, stacks= and command_line= would keep")
    to = given.path("output", output)
    run(
        {
            "command": words,
            "is_system": bool(system),
            "seconds": None if seconds is None else float(seconds),
            "output": os.path.abspath(to),
            "slab": bool(slab),
            "processes": bool(processes),
            "stacks": bool(stacks),
            "events": given.words("events", events),
            "anonymous": bool(anonymous),
            "command_line": bool(command_line),
            "buffer": given.whole_or_none("buffer", buffer),
        }
    )
    return Recording(to)
