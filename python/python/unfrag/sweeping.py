"""Sweeps: one function over a grid of parameters, on any executor, into one Parquet data set (:mod:`unfrag.dataset`).

A row is known by the content of what it was computed from: by its parameters, and by the digests of the files that they name.
A sweep that is begun again asks what it does not have: points that are new, whose files have changed, or that failed.

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
from queue import SimpleQueue
from typing import Any

from . import content, guard
from ._unfrag import UnfragError, __version__
from .dataset import Row, Sweep
from .given import wrong
from .inputs import Input, host, store
from .progress import Progress, teller
from .tables import flat

#: Rows of a file of the journal, at most, and seconds for which a row waits for others.
_BATCH = 64
_SECONDS = 5.0
#: Attempts for a task whose worker dies, while no other task ends: a pool of processes breaks for all of its tasks at once.
_ATTEMPTS = 5
#: Seconds after which an input that was sent to a machine, and is still missing there, is sent again.
_ON_ITS_WAY = 10.0
#: Seconds before a task tries again whose input is on its way.
_PAUSE = 0.01
#: Parameters of this package's questions that are paths where they are texts, too.
_PATHS = {"recording", "scenario", "path", "costs", "snapshots"}


def points(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[Row]:
    """The points of a grid: the product of the values of a mapping, or the mappings of a list as they are."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
                wrong(f"grid[{name!r}]", values, "a list of values")
        names = [str(name) for name in grid]
        return [{name: value for name, value in zip(names, values)} for values in itertools.product(*grid.values())]
    if isinstance(grid, (str, bytes)) or not isinstance(grid, Iterable):
        wrong("grid", grid, "a mapping of lists, or a list of mappings")
    found: list[Row] = []
    for point in grid:
        if not isinstance(point, Mapping):
            wrong("a point of the grid", point, "a mapping")
        found.append({str(name): value for name, value in point.items()})
    return found


def key(point: Mapping[str, Any], *of: object) -> str:
    """What tells a point from others: a hash of its parameters by name, and of what else there is."""
    text = json.dumps([point, *of], sort_keys=True, default=_name)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def contents(parameters: Mapping[str, Any], is_own: bool, known: dict[str, str]) -> dict[str, str]:
    """The digests of the files that parameters name, by parameter. ``known`` has those that were computed already."""
    found: dict[str, str] = {}

    def look(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for inner, v in value.items():
                look(f"{name}.{inner}", v)
        elif isinstance(value, (list, tuple)):
            for at, v in enumerate(value):
                look(f"{name}.{at}", v)
        elif hasattr(value, "digest"):
            found[name] = value.digest[:16]
        elif isinstance(value, os.PathLike) or (isinstance(value, str) and _is_path(name, value, is_own)):
            where = os.path.abspath(os.fspath(value))
            if where not in known:
                known[where] = content.of_input(where)
            found[name] = known[where]

    for name, value in parameters.items():
        look(name, value)
    return found


def _is_path(name: str, value: str, is_own: bool) -> bool:
    """Whether a text is the name of a file."""
    return (is_own and name.split(".")[0] in _PATHS) or (0 < len(value) < 4096 and os.path.isfile(value))


def _run(function: Callable[..., Any], point: Row, of: str, sent: Sequence[tuple[str, str, bytes]] = ()) -> Row | Missing:
    """Computes a row; what it cannot answer is in the row. Where an input is missing, it says so."""
    for digest, name, data in sent:
        store(digest, name, data)
    missing = [name for name, value in point.items() if isinstance(value, Input) and not value.is_here()]
    if missing:
        return Missing(host(), missing)
    row: Row = {"key": of, "error": None} | _columns(point)
    try:
        result = function(**point)
    except (UnfragError, ValueError) as e:
        return row | {"error": str(e)}
    row["version"] = __version__
    return row | (result.summary() if hasattr(result, "summary") else _flat(result))


def _flat(result: Any) -> Row:
    if not isinstance(result, Mapping):
        wrong("what the function returns", result, "an answer or a mapping")
    return {name: _plain(value) for name, value in flat(dict(result)).items()}


def _columns(point: Mapping[str, Any]) -> Row:
    """Parameters as columns, each setting one of its own."""
    row: Row = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for inner, v in value.items():
                add(f"{name}.{inner}", v)
        else:
            row[f"parameter.{name}"] = _plain(value)

    for name, value in point.items():
        add(name, value)
    return row


def _plain(value: Any) -> Any:
    """A value of a column."""
    if value is None or isinstance(value, (bool, int, float, str)):
        # Numbers of numpy are some of these, too, under names of their own.
        item = getattr(value, "item", None)
        return item() if item else value
    if isinstance(value, (list, tuple)) and all(isinstance(v, (str, int, float)) for v in value):
        return ",".join(map(str, value))
    if hasattr(value, "item") or isinstance(value, os.PathLike):
        return _name(value)
    return json.dumps(value, sort_keys=True, default=_name)


def _name(value: Any) -> Any:
    """What names a value in a hash or in a column: an input goes by its content, wherever it lies."""
    if isinstance(value, Input):
        return f"{value.name} {value.digest[:16]}"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, range):
        return list(value)
    if callable(getattr(value, "item", None)):
        return value.item()
    wrong("a parameter", value, "a number, a text, a path, a truth value, None, or a list or a mapping of such")


def named(function: Callable[..., Any]) -> str:
    """The name of a question."""
    name = f"{function.__module__}.{getattr(function, '__qualname__', type(function).__qualname__)}"
    return name.replace("unfrag.questions.", "unfrag.")


def about(function: Callable[..., Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
    """What a sweep or a tuning is of: who answers, and with which fixed parameters."""
    return {
        "function": named(function),
        "code": content.of_function(function),
        "fixed": {k: _plain(v) for k, v in fixed.items()},
        "version": __version__,
    }


@dataclass
class Missing:
    """What a worker says that lacks inputs."""

    host: str
    #: The parameters whose inputs are missing there.
    names: list[str]


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
        out: the directory of the rows. One that has some goes on where it stopped: a row is asked again if a file that it
            was computed from has changed, or if it failed.
        executor: who computes: any ``concurrent.futures.Executor``, or a function that makes one, which is called again
            where an executor breaks because a worker died. Without one, processes of this machine.
        fixed: parameters that are the same at every point. An :class:`unfrag.Input` goes to the workers by its content, once
            to each machine.
        progress: called with points that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The sweep: ``to_pandas()``, ``to_polars()``, ``to_arrow()``, and ``path``, a Parquet data set for any reader. A row
        has its ``key``, ``parameter.*`` (each setting is a column: ``parameter.settings.vm.swappiness``), ``content.*`` (the
        digests of the files that it was computed from), what the answer has outside of lists, ``version``, and ``error``
        where the question could not be answered.

    Raises:
        ValueError: ``out`` is a sweep of something else, or by another version.
        Exception: whatever else the function raises; what was computed before stays.
    """
    if not callable(function):
        wrong("function", function, "a function such as unfrag.replay")
    guard.check("sweep", executor)
    fixed = dict(fixed or {})
    tell = teller(progress)
    whole = Sweep(os.fspath(out))
    grid_points = points(grid)
    of = about(function, fixed)
    whole._begin(of)
    is_own = getattr(function, "__module__", "").startswith("unfrag.")
    known: dict[str, str] = {}
    todo: dict[str, Row] = {}
    beside: dict[str, Row] = {}
    for point in grid_points:
        digests = contents(fixed | point, is_own, known)
        by_name = key(fixed | point)
        by_content = key(fixed | point, digests)
        todo[by_content] = point
        beside[by_content] = {"point": by_name} | {f"content.{name}": digest for name, digest in digests.items()}
    order = list(todo)
    finished = whole._finished({row["point"]: of for of, row in beside.items()})
    for done_before in finished:
        # What could not be read here is not known by its content.
        if all(content.is_known(d) for name, d in beside[done_before].items() if name != "point"):
            todo.pop(done_before)
    total = len(order)
    done = total - len(todo)
    if tell:
        tell(done, total)
    rows: list[Row] = []
    try:
        if todo:
            with Workers(executor) as workers:
                begun = time.monotonic()
                for row in workers.run(function, fixed, todo):
                    rows.append(row | beside[row["key"]])
                    done += 1
                    if len(rows) >= _BATCH or time.monotonic() - begun > _SECONDS:
                        whole._add(rows)
                        rows, begun = [], time.monotonic()
                    if tell:
                        tell(done, total)
    finally:
        # Also where the function raises, or somebody presses Ctrl-C.
        if rows:
            whole._add(rows)
        whole._end(order)
    return whole


class Workers:
    """An executor, made again when it breaks."""

    def __init__(self, executor: Executor | Callable[[], Executor] | None) -> None:
        # Dask's executor and others do not derive from Executor, but all of them have `submit`.
        self._make: Callable[[], Executor] | None = None
        if executor is None:
            self._make = _processes
        elif not hasattr(executor, "submit") and callable(executor):
            self._make = executor
        elif not hasattr(executor, "submit"):
            wrong("executor", executor, "a concurrent.futures.Executor, or a function that makes one,")
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
