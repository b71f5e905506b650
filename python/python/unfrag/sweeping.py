"""Sweeps: one function over a grid of parameters, on any executor, into one Parquet data set.

A sweep is a directory. ``sweep.json`` says what it is of; each finished batch of rows is a Parquet file of its own, written
under another name first and then renamed, so that a file is whole or not there. A row names its parameters by a hash, so a
sweep that is begun again knows what it has, and a row that was computed twice is written once.

Any ``concurrent.futures.Executor`` runs it: processes of one machine, Dask (``Client.get_executor()``), Ray, and whatever else
has one. A task whose worker dies is given to the executor again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ._unfrag import UnfragError, __version__
from .inputs import Input, host, store, write
from .progress import Progress, teller
from .tables import flat

Row = dict[str, Any]

#: Rows of a file, at most, and seconds for which a row waits for others.
_BATCH = 64
_SECONDS = 5.0
#: Attempts for a task whose worker dies, while no other task ends: a pool of processes breaks for all of its tasks at once.
_ATTEMPTS = 5
#: Seconds after which an input that was sent to a machine, and is still missing there, is sent again.
_ON_ITS_WAY = 10.0
#: Seconds before a task tries again whose input is on its way.
_PAUSE = 0.01


def points(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[Row]:
    """The points of a grid: the product of the values of a mapping, or the mappings of a list as they are."""
    if isinstance(grid, Mapping):
        names = list(grid)
        return [dict(zip(names, values)) for values in itertools.product(*grid.values())]
    return [dict(point) for point in grid]


def key(point: Mapping[str, Any]) -> str:
    """What tells a point from others: a hash of its parameters by name."""
    text = json.dumps(point, sort_keys=True, default=_name)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _run(function: Callable[..., Any], point: Row, of: str, sent: Sequence[tuple[str, str, bytes]] = ()) -> Row | Missing:
    """Computes a row; what it cannot answer is in the row. Where an input is missing, it says so."""
    for digest, name, content in sent:
        store(digest, name, content)
    missing = [name for name, value in point.items() if isinstance(value, Input) and not value.is_here()]
    if missing:
        return Missing(host(), missing)
    row: Row = {"key": of, "error": None}
    row |= {f"parameter.{name}": _plain(value) for name, value in point.items()}
    try:
        result = function(**point)
    except (UnfragError, ValueError) as e:
        return row | {"error": str(e)}
    row["version"] = __version__
    return row | (result.summary() if hasattr(result, "summary") else flat(result))


def _plain(value: Any) -> Any:
    """A parameter as a value of a column."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Input):
        return _name(value)
    return json.dumps(value, sort_keys=True, default=_name)


def _name(value: Any) -> str:
    """What names an input or a path: an input goes by its content, wherever it lies."""
    return f"{value.name} {value.digest[:16]}" if isinstance(value, Input) else os.fspath(value)


def named(function: Callable[..., Any]) -> str:
    """The name of a question."""
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"


@dataclass
class Missing:
    """What a worker says that lacks inputs."""

    host: str
    #: The parameters whose inputs are missing there.
    names: list[str]


class Sweep:
    """The directory of a sweep."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.path = Path(out)

    def files(self) -> list[Path]:
        """The finished files."""
        return sorted(self.path.glob("part-*.parquet"))

    def finished(self) -> set[str]:
        """The keys of the rows that it has."""
        import pyarrow.parquet

        found: set[str] = set()
        for file in self.files():
            found |= set(pyarrow.parquet.read_table(file, columns=["key"])["key"].to_pylist())
        return found

    def to_arrow(self) -> Any:
        """All rows as a ``pyarrow.Table``, sorted by key, none of them twice."""
        import pyarrow
        import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(file) for file in self.files()]
        if not tables:
            return pyarrow.table({"key": pyarrow.array([], pyarrow.string())})
        whole = pyarrow.concat_tables(tables, promote_options="permissive")
        whole = whole.select(sorted(whole.column_names)).sort_by("key")
        keys = whole["key"].to_pylist()
        first = [at == 0 or key != keys[at - 1] for at, key in enumerate(keys)]
        return whole.filter(pyarrow.array(first, pyarrow.bool_()))

    def to_pandas(self) -> Any:
        """All rows as a ``pandas.DataFrame``."""
        return self.to_arrow().to_pandas()

    def begin(self, function: Callable[..., Any], fixed: Mapping[str, Any]) -> None:
        """Makes the directory, or checks that it is of the same sweep."""
        self.path.mkdir(parents=True, exist_ok=True)
        about = {"function": named(function), "fixed": {k: _plain(v) for k, v in fixed.items()}, "version": __version__}
        file = self.path / "sweep.json"
        if file.exists():
            before = json.loads(file.read_text())
            if before != about:
                differs = [k for k in about if before.get(k) != about[k]]
                raise ValueError(f"{self.path} is a sweep of something else ({', '.join(differs)}): choose another out=")
            return
        write(file, json.dumps(about, indent=1).encode())

    def add(self, rows: list[Row]) -> None:
        """Writes rows as one more file."""
        import pyarrow
        import pyarrow.parquet

        names = sorted({name for row in rows for name in row})
        table = pyarrow.Table.from_pylist([{n: row.get(n) for n in names} for row in rows])
        sink = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, sink)
        name = f"part-{hashlib.sha256(''.join(sorted(r['key'] for r in rows)).encode()).hexdigest()[:16]}.parquet"
        write(self.path / name, sink.getvalue().to_pybytes())


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    out: str | os.PathLike[str],
    executor: Executor | Callable[[], Executor] | None = None,
    fixed: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Sweep:
    """Calls a function at every point of a grid, and writes a row for each.

    Args:
        function: such as ``unfrag.simulate``: it takes the parameters by name and returns an answer, or a mapping.
        grid: values by parameter, of which every combination is a point; or the points themselves.
        out: the directory of the rows. One that has some goes on where it stopped.
        executor: who computes: any ``concurrent.futures.Executor``, or a function that makes one, which is called again
            where an executor breaks because a worker died. Without one, processes of this machine.
        fixed: parameters that are the same at every point. An :class:`unfrag.Input` goes to the workers by its content, once
            to each machine.
        progress: called with points that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The sweep: ``to_pandas()``, ``to_arrow()``, ``files()``. A row has its ``key``, ``parameter.*``, what the answer
        has outside of lists, ``version``, and ``error`` where the question could not be answered.

    Raises:
        ValueError: ``out`` is a sweep of something else.
        Exception: whatever else the function raises; what was computed before stays.
    """
    fixed = dict(fixed or {})
    tell = teller(progress)
    whole = Sweep(out)
    whole.begin(function, fixed)
    todo = {key(point): point for point in points(grid)}
    total = len(todo)
    for known in whole.finished():
        todo.pop(known, None)
    if tell:
        tell(total - len(todo), total)
    if not todo:
        return whole
    with Workers(executor) as workers:
        rows: list[Row] = []
        begun = time.monotonic()
        done = total - len(todo)
        try:
            for row in workers.run(function, fixed, todo):
                rows.append(row)
                done += 1
                if len(rows) >= _BATCH or time.monotonic() - begun > _SECONDS:
                    whole.add(rows)
                    rows, begun = [], time.monotonic()
                if tell:
                    tell(done, total)
        finally:
            # Also where the function raises, or somebody presses Ctrl-C.
            if rows:
                whole.add(rows)
    return whole


class Workers:
    """An executor, made again when it breaks."""

    def __init__(self, executor: Executor | Callable[[], Executor] | None) -> None:
        # Dask's executor and others do not derive from Executor, but all of them have `submit`.
        self._make: Callable[[], Executor] | None = None
        if executor is None:
            self._make = _processes
        elif not hasattr(executor, "submit"):
            self._make = executor
        self._executor: Any = self._make() if self._make else executor

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._make:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, *task: Any) -> Any:
        try:
            return self._executor.submit(*task)
        except RuntimeError:
            # It broke, or was shut down when a worker died.
            if not self._make:
                raise
            self._executor = self._make()
            return self._executor.submit(*task)

    def run(self, function: Callable[..., Any], fixed: Row, todo: Mapping[str, Row]) -> Iterator[Row]:
        """The row of each point, in the order in which they end."""
        attempts: Counter[str] = Counter()
        running: dict[str, Future[Row | Missing]] = {}
        ended: SimpleQueue[tuple[str, Future[Row | Missing]]] = SimpleQueue()
        sent: dict[tuple[str, str], float] = {}

        def submit(of: str, inputs: Sequence[tuple[str, str, bytes]] = ()) -> None:
            running[of] = self._submit(_run, function, fixed | todo[of], of, inputs)
            running[of].add_done_callback(lambda f: ended.put((of, f)))

        def supply(of: str, missing: Missing) -> None:
            """Sends what is missing, unless it is on its way there; then the task just tries again."""
            inputs = []
            for name in missing.names:
                value = (fixed | todo[of])[name]
                to = (missing.host, value.digest)
                if time.monotonic() - sent.get(to, -_ON_ITS_WAY) >= _ON_ITS_WAY:
                    sent[to] = time.monotonic()
                    inputs.append((value.digest, value.name, value.content()))
            if not inputs:
                time.sleep(_PAUSE)
            submit(of, inputs)

        try:
            for of in todo:
                submit(of)
            while running:
                of, future = ended.get()
                try:
                    row = future.result()
                except BaseException as e:
                    attempts[of] += 1
                    if not _died(e) or attempts[of] >= _ATTEMPTS:
                        raise
                    submit(of)
                    continue
                if isinstance(row, Missing):
                    supply(of, row)
                    continue
                del running[of]
                attempts.clear()
                yield row
        finally:
            # Of a sweep that ends before its time, no executor goes on with what nobody waits for.
            for future in running.values():
                future.cancel()


def _processes() -> Executor:
    """Processes of this machine, one for each CPU that this one may use."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # The laboratory has threads, so a forked process is not safe.
    return ProcessPoolExecutor(cpus, mp_context=multiprocessing.get_context("spawn"))


def _died(e: BaseException) -> bool:
    """Whether a worker died, by whatever name its executor calls that."""
    names = {c.__name__ for c in type(e).__mro__}
    return bool(names & {"BrokenExecutor", "KilledWorker", "WorkerCrashedError", "RayActorError", "NodeDiedError", "CancelledError"})
