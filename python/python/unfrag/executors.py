"""Executors for :func:`unfrag.sweep` and :func:`unfrag.tune` where nobody else has one.

Dask has one: ``dask.distributed.Client(...).get_executor(pure=False, retries=5)``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from .optional import library


class Here(Executor):
    """Runs each task at once, where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs ``fn(*args, **kwargs)``."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as e:
            future.set_exception(e)
        return future


class RayExecutor(Executor):
    """Runs tasks on Ray, which must have been initialised (``ray.init()``).

    Ray gives a task whose worker dies to another one, up to ``retries`` times.
    """

    def __init__(self, *, cpus: float = 1, retries: int = 5) -> None:
        ray = library("ray")
        # An exception of the task itself is an answer; only a worker that dies is a reason to try again.
        self._options = {"num_cpus": cpus, "max_retries": retries, "retry_exceptions": False}
        self._ray = ray
        self._refs: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Runs ``fn(*args, **kwargs)`` on some worker."""
        task = self._ray.remote(fn).options(**self._options)
        ref = task.remote(*args, **kwargs)
        future: Future[Any] = ref.future()
        self._refs[future] = ref
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: Future[Any]) -> None:
        ref = self._refs.pop(future, None)
        if future.cancelled() and ref is not None:
            self._ray.cancel(ref, force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Waits for the tasks, or cancels them."""
        refs = dict(self._refs)
        if cancel_futures:
            for future in refs:
                future.cancel()
        elif wait and refs:
            self._ray.wait(list(refs.values()), num_returns=len(refs))
