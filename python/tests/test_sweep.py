"""Sweeps: every row once, whoever computes it and whoever dies."""

import hashlib
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import unfrag

BUILD = Path(__file__).parents[2] / "samples" / "small-build.toml"


def slow_square(x, seed=0):
    """Takes a moment, so that somebody can die meanwhile."""
    time.sleep(0.05)
    return {"square": x * x, "of": {"seed": seed}, "pid": os.getpid()}


def picky(x):
    if x == 3:
        raise unfrag.UnfragError("three is too many (choose another)")
    return {"x": x}


def broken_at_five(x):
    if x == 5:
        raise KeyError(x)
    return {"x": x}


def test_a_row_for_every_point(tmp_path):
    seen = []
    swept = unfrag.sweep(
        slow_square,
        {"x": range(5), "seed": [1, 2]},
        out=tmp_path,
        executor=ThreadPoolExecutor(4),
        progress=lambda done, total: seen.append((done, total)),
    )
    frame = swept.to_pandas()
    assert len(frame) == 10 and frame["key"].is_unique
    assert (frame["square"] == frame["parameter.x"] ** 2).all()
    assert (frame["of.seed"] == frame["parameter.seed"]).all()
    assert seen == [(n, 10) for n in range(11)]
    assert set(frame["version"]) == {unfrag.__version__}


def test_what_cannot_be_answered_is_in_its_row(tmp_path):
    swept = unfrag.sweep(picky, [{"x": 2}, {"x": 3}], out=tmp_path, executor=ThreadPoolExecutor(1))
    errors = {row["parameter.x"]: row["error"] for row in swept.to_arrow().to_pylist()}
    assert errors[2] is None and errors[3].startswith("three is too many")


def test_another_exception_ends_the_sweep_and_what_was_computed_stays(tmp_path):
    with pytest.raises(KeyError):
        unfrag.sweep(broken_at_five, {"x": range(9)}, out=tmp_path, executor=ThreadPoolExecutor(1))
    assert sorted(unfrag.Sweep(tmp_path).to_pandas()["parameter.x"]) == [0, 1, 2, 3, 4]


def test_a_sweep_that_ends_before_its_time_leaves_nothing_running(tmp_path):
    asked = []

    def question(x):
        asked.append(x)
        time.sleep(0.005)
        return broken_at_five(x)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyError):
            unfrag.sweep(question, {"x": range(500)}, out=tmp_path, executor=pool)
    assert len(asked) < 50


def test_another_sweep_does_not_go_into_the_same_directory(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        unfrag.sweep(picky, {"x": [1]}, out=tmp_path, executor=pool)
        with pytest.raises(ValueError, match="a sweep of something else .function"):
            unfrag.sweep(slow_square, {"x": [1]}, out=tmp_path, executor=pool)


def test_simulations_on_processes_are_those_of_one_process(tmp_path):
    grid = {"seed": range(1, 5), "kernel": ["6.1", "2.6.32"]}
    fixed = {"scenario": str(BUILD)}
    one = unfrag.sweep(unfrag.simulate, grid, fixed=fixed, out=tmp_path / "one", executor=ThreadPoolExecutor(1))
    many = unfrag.sweep(unfrag.simulate, grid, fixed=fixed, out=tmp_path / "many")
    assert one.to_arrow().equals(many.to_arrow())
    frame = one.to_pandas()
    assert len(frame) == 8 and frame["counters.pgfault"].gt(0).all() and frame["calibration"].nunique() == 1


def test_a_row_of_a_replay_has_the_totals_of_each_kernel(tmp_path):
    grid = {"settings": [{"vm.min_free_kbytes": kb} for kb in (4096, 65536)]}
    fixed = {"recording": str(BUILD.parent / "gcc-768M.unfrag"), "kernels": ["6.1", "2.6.32"]}
    frame = unfrag.sweep(unfrag.replay, grid, fixed=fixed, out=tmp_path, executor=ThreadPoolExecutor(1)).to_pandas()
    assert len(frame) == 2 and frame["6.1.totals.allocations"].gt(0).all()
    assert {"2.6.32.totals.fallbacks", "recording.events"} <= set(frame.columns)


def test_a_sweep_that_was_killed_goes_on_where_it_stopped(tmp_path):
    program = textwrap.dedent(
        f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import unfrag, unfrag.sweeping
        from concurrent.futures import ThreadPoolExecutor
        from test_sweep import slow_square
        unfrag.sweeping._BATCH = 3
        unfrag.sweep(slow_square, {{"x": range(200)}}, out={str(tmp_path)!r}, executor=ThreadPoolExecutor(2))
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    while len(list(tmp_path.glob(".unfrag/part-*.parquet"))) < 5:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = unfrag.Sweep(tmp_path).to_pandas()
    assert 15 <= len(before) < 200
    seen = []
    swept = unfrag.sweep(
        slow_square, {"x": range(200)}, out=tmp_path, executor=ThreadPoolExecutor(8), progress=lambda d, t: seen.append(d)
    )
    after = swept.to_pandas()
    assert len(after) == 200 and after["key"].is_unique
    assert seen[0] == len(before), "finished rows are not run again"
    again = after.set_index("key").loc[before["key"], "pid"]
    assert (again.to_numpy() == before["pid"].to_numpy()).all()


def test_workers_that_die_lose_nothing(tmp_path):
    made = []

    def pool():
        made.append(ProcessPoolExecutor(2, mp_context=get_context("spawn")))
        return made[-1]

    with Killer(lambda: list(made[-1]._processes or {}) if made else []) as killer:
        frame = unfrag.sweep(slow_square, {"x": range(250)}, out=tmp_path, executor=pool).to_pandas()
    assert len(made) > 6 and killer.kills > 5, "more pools broke than a task has attempts"
    every_row_once(frame, 250)


def die(x):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_every_worker_ends_the_sweep(tmp_path):
    with pytest.raises(BrokenExecutor):
        unfrag.sweep(die, {"x": [1]}, out=tmp_path)


class Counted(ProcessPoolExecutor):
    """Processes, and how many bytes went to them."""

    sent = 0

    def submit(self, fn, /, *args, **kwargs):
        Counted.sent += len(pickle.dumps((fn, args, kwargs)))
        return super().submit(fn, *args, **kwargs)


def test_an_input_travels_once(tmp_path, monkeypatch):
    monkeypatch.setenv("UNFRAG_CACHE", str(tmp_path / "cache"))
    recording = tmp_path / "here" / "gcc.unfrag"
    recording.parent.mkdir()
    recording.write_bytes((BUILD.parent / "gcc-768M.unfrag").read_bytes())
    grid = {"settings": [{"vm.min_free_kbytes": kb} for kb in range(4096, 4108)]}
    fixed = {"recording": unfrag.Input(recording), "kernels": ["6.1"]}
    with Counted(2, mp_context=get_context("spawn")) as pool:
        swept = unfrag.sweep(unfrag.replay, grid, fixed=fixed, out=tmp_path / "out", executor=pool)
    frame = swept.to_pandas()
    assert len(frame) == 12 and frame["error"].isna().all() and frame["6.1.totals.allocations"].gt(0).all()
    size = recording.stat().st_size
    assert size < Counted.sent < size + 200_000, "once, and little else"
    assert len(list((tmp_path / "cache").glob("*/gcc.unfrag"))) == 1
    # The same content elsewhere is the same input: nothing is asked again.
    moved = recording.rename(tmp_path / "gcc.unfrag")
    again = {"recording": unfrag.Input(moved), "kernels": ["6.1"]}
    with ThreadPoolExecutor(1) as pool:
        assert unfrag.sweep(broken_at_five, [], fixed=again, out=tmp_path / "other", executor=pool).files() == []
        assert len(unfrag.sweep(unfrag.replay, grid, fixed=again, out=tmp_path / "out", executor=pool).files()) == len(swept.files())


def test_an_input_is_stored_where_nobody_else_laid_something(tmp_path, monkeypatch):
    from unfrag import inputs

    digest = hashlib.sha256(b"content").hexdigest()
    victim = tmp_path / "victim"
    victim.write_text("victim")
    monkeypatch.setenv("UNFRAG_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "cache" / digest / "x"
    place.parent.mkdir(parents=True)
    for planted in (place, place.with_name(f".x.{os.getpid()}"), place.with_name("x.tmp")):
        planted.symlink_to(victim)
    inputs.store(digest, "x", b"content")
    assert place.read_bytes() == b"content" and not place.is_symlink()
    assert place.stat().st_mode & 0o777 == 0o600
    assert victim.read_text() == "victim"
    with pytest.raises(IsADirectoryError):
        inputs.write(tmp_path / "cache", b"content")
    assert not list(tmp_path.glob(".unfrag-*"))
    # A folder among the temporary files that is a link, or another user's.
    monkeypatch.delenv("UNFRAG_CACHE")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"unfrag-{os.getuid()}"
    folder.symlink_to(tmp_path / "cache")
    with pytest.raises(PermissionError, match="UNFRAG_CACHE"):
        inputs.store(digest, "x", b"content")
    folder.unlink()
    inputs.store(digest, "x", b"content")
    assert folder.stat().st_mode & 0o777 == 0o700


class Killer:
    """Kills one of the processes of ``of()`` now and then, until it is left, or has killed enough: on a slow machine workers
    could otherwise die faster than they begin."""

    def __init__(self, of, most=8):
        self.kills = 0
        self._of, self._most = of, most
        self._chance = random.Random(os.environ.get("UNFRAG_SEED", "1"))
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while self.kills < self._most and not self._ends.wait(0.35 + 0.7 * self._chance.random()):
            try:
                victims = [pid for pid in self._of() if pid]
                if victims:
                    os.kill(self._chance.choice(victims), signal.SIGKILL)
                    self.kills += 1
            except OSError:
                # A process ended by itself while it was looked at.
                pass

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()


def every_row_once(frame, rows):
    assert sorted(frame["parameter.x"]) == list(range(rows)) and frame["key"].is_unique


def test_dask_workers_that_die_lose_nothing(tmp_path):
    dask, distributed = pytest.importorskip("dask"), pytest.importorskip("distributed")

    def workers():
        """Those that run: Dask gives up one that dies while it begins."""
        return [worker.pid for worker in list(cluster.workers.values()) if worker.status.name == "running"]

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 100}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        Killer(workers) as killer,
    ):
        executor = client.get_executor(pure=False, retries=5)
        frame = unfrag.sweep(slow_square, {"x": range(200)}, out=tmp_path, executor=executor).to_pandas()
    every_row_once(frame, 200)
    assert killer.kills > 3


def test_ray_workers_that_die_lose_nothing(tmp_path):
    ray = pytest.importorskip("ray")
    from unfrag.executors import RayExecutor

    def workers():
        """Ray's workers call themselves after what they do; its agents, without which a node ends, do so too."""
        names = {int(comm.parent.name): comm.read_text() for comm in Path("/proc").glob("[0-9]*/comm")}
        return [pid for pid, name in names.items() if name.startswith(("ray::_run", "ray::IDLE"))]

    here = {"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=here)
    try:
        with Killer(workers) as killer:
            frame = unfrag.sweep(slow_square, {"x": range(200)}, out=tmp_path, executor=RayExecutor()).to_pandas()
    finally:
        ray.shutdown()
    every_row_once(frame, 200)
    assert killer.kills > 3
