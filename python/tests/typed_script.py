"""A script that uses every answer, for type checkers: each expression has a type, and it is the one that is written here.

``Any`` is where the library that an answer goes to has no types of its own (pandas, pyarrow, matplotlib), and where JSON is
handed out as it is (``to_dict()``, ``rows()``, ``summary()`` of an answer); nothing of that is here. It can be run, too.
"""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import polars
from typing_extensions import assert_type

import unfrag
from unfrag import results
from unfrag.results import blame, doctor, explain, profile, replay, simulate, slab, summary, wakes

SAMPLES = Path(__file__).parents[2] / "samples"
GCC = SAMPLES / "gcc-768M.unfrag"


def of_a_replay() -> None:
    answer = unfrag.replay(GCC, kernels=["6.1", "6.18"], settings={"vm.swappiness": 60}, mode="predict", members=1)
    assert_type(answer, results.Replay)
    assert_type(answer.recording.events, int)
    assert_type(answer.trust.model, replay.Grade | None)
    assert_type(answer.answer.kernels[0].says, replay.Says)
    kernel = answer.kernels[0]
    assert_type(kernel, replay.Kernel)
    assert_type(kernel.totals, unfrag.Named[int | None])
    assert_type(kernel.totals.allocations, int | None)
    assert_type(kernel.totals["allocations"], int | None)
    assert_type(kernel.settings["vm.min_free_kbytes"], int | float | str | list[int] | None)
    assert_type(kernel.samples[-1].zones[0].free_blocks, list[int])
    assert_type(kernel.samples[-1].zones[0].unusable_index["9"], float)
    if kernel.what_if is not None:
        change = kernel.what_if.changes[0]
        assert_type(change.bar, tuple[float, float] | None)
        assert_type(change.verdict, replay.Verdict | None)
        assert_type(kernel.what_if.class_.asked, replay.Asked)
    if kernel.accuracy is not None:
        assert_type(kernel.accuracy.free_pages_error.median, float)
    if answer.window is not None:
        assert_type(answer.window.from_seconds, float)
    assert_type(answer.text, str)
    assert_type(answer.svg, str | None)
    assert_type(answer.to_polars(), polars.DataFrame)


def of_a_machine() -> None:
    run = unfrag.simulate(SAMPLES / "small-build.toml", kernel="6.18", seed=3)
    assert_type(run, results.Simulation)
    assert_type(run.counters.pgfault, int)
    assert_type(run.samples[0].memory.free, int)
    assert_type(run.tasks[0].ended_ns, int | None)
    assert_type(run.alloc_failures.first, list[simulate.AllocFailure])
    experiment = unfrag.experiment("one-time", runs=1)
    assert_type(experiment, results.Experiment)
    assert_type(experiment.results[0].metrics["elapsed_s"].median, float)
    assert_type(experiment.results[0].source, unfrag.Named[float])


def of_a_host() -> None:
    found = unfrag.doctor(GCC, need=["20x2M"], after="compact")
    assert_type(found, results.Diagnosis)
    assert_type(found.huge_pages.now, int | None)
    assert_type(found.zones[0].unusable_index["9"], float)
    if found.needs is not None:
        assert_type(found.needs.verdict, doctor.Verdict)
        assert_type(found.needs.each[0].count, int)
    for advice in found.advice:
        assert_type(advice.command, str)
        assert_type(advice.lasts, doctor.Lasts)
    moments = unfrag.inspect(GCC)
    assert_type(moments, results.Inspection)
    assert_type(moments.snapshots[0].zones[0].free_pages, int | None)
    log = unfrag.explain(SAMPLES / "page-allocation-failure.log")
    assert_type(log, results.Explanation)
    assert_type(log.reports[0].verdict, str | None)
    assert_type(log.reports[0].zones, list[explain.Zone])


def of_a_trace() -> None:
    with unfrag.Recording(GCC) as recording:
        assert_type(recording, unfrag.Recording)
        assert_type(recording.kinds, list[tuple[str, int]])
        assert_type(recording.events(time="ns"), unfrag.Table)
        assert_type(recording.table("mm_page_alloc").to_polars(), polars.DataFrame)
        assert_type(recording.snapshot(recording.snapshots[0], "buddyinfo"), bytes)
        assert_type(recording.replay(kernels="6.18", members=1), results.Replay)
        assert_type(recording.doctor(), results.Diagnosis)
        assert_type(recording.inspect(), results.Inspection)
        told = recording.summary(since=datetime.timedelta(seconds=1))
        assert_type(told, results.Summary)
        if told.requests is not None:
            assert_type(told.requests.processes, list[summary.ProcessRequests])
            assert_type(told.requests.processes[0].process, str | None)
        who = recording.blame()
        assert_type(who, results.Blame)
        assert_type(who.holders, list[blame.Holder])
        assert_type(who.answer.sentence, str)
        does = recording.profile()
        assert_type(does, results.Profile)
        assert_type(does.all.pages, unfrag.Named[profile.Pages])
        assert_type(does.to_toml(), str)
    woken = unfrag.Recording(SAMPLES / "rings-1024M.unfrag").wakes()
    assert_type(woken, results.Wakes)
    assert_type(woken.callers, list[wakes.Caller])
    held = unfrag.slab(SAMPLES / "slab-find.unfrag", allocators="slub")
    assert_type(held, results.SlabReport)
    assert_type(held.allocators[0].caches, list[slab.Cache])
    assert_type(held.allocators[0].peak.waste_bytes, int)


def of_many() -> None:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        fixed = {"scenario": SAMPLES / "small-build.toml"}
        swept = unfrag.sweep(unfrag.simulate, {"seed": [1, 2]}, out=folder, fixed=fixed, executor=pool)
        assert_type(swept, unfrag.Sweep)
        assert_type(swept.to_polars(), polars.DataFrame)
        assert_type(swept.errors(), dict[str, str])
        assert_type(len(swept), int)
    tuning = unfrag.tune(
        unfrag.simulate, {"vm.min_free_kbytes": (1024, 4096)}, "counters.pgmajfault", runs=1, fixed=fixed
    )
    assert_type(tuning, unfrag.Tuning)
    assert_type(tuning.best_value, float)


if __name__ == "__main__":
    for use in (of_a_replay, of_a_machine, of_a_host, of_a_trace, of_many):
        use()
