"""Tuning: the same seed finds the same settings, however often it is interrupted."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import unfrag
from unfrag.tuning import metric

BUILD = Path(__file__).parents[2] / "samples" / "small-build.toml"
SETTINGS = {"vm.min_free_kbytes": (256, 65536), "vm.watermark_scale_factor": [10, 100]}


def valley(settings, tilt=1.0):
    """Best where min_free_kbytes is 4096."""
    x, scale = settings["vm.min_free_kbytes"], settings["vm.watermark_scale_factor"]
    return {"totals": {"stalls": abs(x - 4096) * tilt + scale}, "kernels": [{"copies": x}]}


WIDE = {"vm.min_free_kbytes": (256, 65536)}


def hill(settings, best):
    """A host for which one value is best."""
    return {"stalls": abs(settings["vm.min_free_kbytes"] - best)}


def found(**options):
    return unfrag.tune(valley, SETTINGS, "totals.stalls", **options)


def test_it_finds_the_valley_and_the_same_one_again():
    one, again = found(runs=60, seed=4), found(runs=60, seed=4)
    assert abs(one.best_settings["vm.min_free_kbytes"] - 4096) < 1000 and one.best_settings["vm.watermark_scale_factor"] == 10
    assert one.to_pandas().equals(again.to_pandas())
    assert not one.to_pandas().equals(found(runs=60, seed=5).to_pandas())
    assert repr(one).startswith("<unfrag.Tuning: totals.stalls = ")
    assert len(one.plot().lines) == 2


def test_it_goes_on_from_its_storage(tmp_path):
    whole = found(runs=25, seed=2)
    stored = tmp_path / "tuning.db"
    seen = []
    found(runs=10, seed=2, storage=stored)
    resumed = found(runs=25, seed=2, storage=stored, progress=lambda done, total: seen.append(done))
    assert seen[0] == 10 and seen[-1] == 25
    columns = ["value", *SETTINGS]
    assert resumed.to_pandas()[columns].equals(whole.to_pandas()[columns])
    with pytest.raises(ValueError, match="another tuning .objective: totals.stalls, now"):
        unfrag.tune(valley, SETTINGS, "totals.stalls + 1", runs=30, storage=stored)


def test_settings_in_use_are_tried_first():
    in_use = {"vm.min_free_kbytes": 4096, "vm.watermark_scale_factor": 10}
    tuning = found(runs=5, first=[in_use])
    assert tuning.best_settings == in_use and tuning.best_value == 10
    worst = unfrag.tune(valley, SETTINGS, lambda answer: answer["totals"]["stalls"], runs=20, maximize=True)
    assert worst.best_value > 5000


def test_the_objective_over_several_points(tmp_path):
    """A fleet: the best for all is between the best for each."""
    fleet = {"best": [2000, 30000]}
    mean = unfrag.tune(hill, WIDE, "stalls", over=fleet, runs=10)
    assert 2000 <= mean.best_settings["vm.min_free_kbytes"] <= 30000 and mean.best_value == 14000
    worst = unfrag.tune(hill, WIDE, "stalls", over=fleet, combine=max, runs=40)
    assert 14000 <= worst.best_value < 16000
    assert abs(worst.best_settings["vm.min_free_kbytes"] - 16000) < 2000
    here = unfrag.tune(hill, WIDE, "stalls", over=fleet, runs=6, storage=tmp_path / "t.db")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        beyond = unfrag.tune(hill, WIDE, "stalls", over=fleet, runs=6, executor=pool)
    assert beyond.to_pandas()[["value", *WIDE]].equals(here.to_pandas()[["value", *WIDE]])
    with pytest.raises(ValueError, match="another tuning .points"):
        unfrag.tune(hill, WIDE, "stalls", over={"best": [1]}, runs=9, storage=tmp_path / "t.db")
    with pytest.raises(ValueError, match="another tuning .question"):
        unfrag.tune(valley, WIDE, "stalls", over=fleet, runs=9, storage=tmp_path / "t.db")
    with pytest.raises(ValueError, match="no point"):
        unfrag.tune(hill, WIDE, "stalls", over=[], runs=1)


def test_a_mistake_ends_it_at_once():
    asked = []
    with pytest.raises(ValueError, match="the answer has no stall$"):
        unfrag.tune(lambda settings: asked.append(settings) or {"stalls": 1}, WIDE, "stall", runs=9)
    assert len(asked) == 1
    with pytest.raises(ValueError, match="mode=.later.: choose one of"):
        unfrag.tune(unfrag.replay, WIDE, "events", runs=9, fixed={"recording": BUILD, "mode": "later"})


def test_settings_of_a_simulation():
    tuning = unfrag.tune(
        unfrag.simulate,
        {"vm.min_free_kbytes": (256, 16384)},
        "counters.allocstall + memory.free / 1e6",
        runs=4,
        fixed={"scenario": BUILD, "kernel": "6.18"},
    )
    assert len(tuning.to_pandas()) == 4 and 256 <= tuning.best_settings["vm.min_free_kbytes"] <= 16384


def test_an_objective_is_an_expression_over_the_answer():
    data = {"a": 2, "b": {"c": 3.5, "d": [{"e": 4}]}, "t": "text"}
    assert metric("a * b.c - min(b.d[0].e, 10) / 2 ** 2", data) == 6
    assert metric("-abs(a - 5)", data) == -3
    for wrong, says in [("b.x", "no b.x"), ("b.d[3].e", "no b.d"), ("t", "no number"), ("__import__('os')", "is no"), ("b", "no number")]:
        with pytest.raises(ValueError, match=says):
            metric(wrong, data)


def test_no_setting_of_such_a_name():
    with pytest.raises(unfrag.UnfragError, match="no settings could be tried.*vm.foo"):
        unfrag.tune(unfrag.simulate, {"vm.foo": (1, 2)}, "elapsed_ns", runs=2, fixed={"scenario": BUILD})
