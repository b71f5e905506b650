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


@pytest.mark.parametrize(
    ("objective", "why"),
    [
        (lambda answer: float("nan"), "the objective is nan there"),
        (lambda answer: float("inf"), "the objective is inf there"),
        ("stalls / 0", "ZeroDivisionError"),
        ("(0 - stalls - 1) ** 0.5", "the objective has no value there"),
        ("2.0 ** (10000 + stalls)", "OverflowError"),
        ("10 ** 10 ** 10", "OverflowError"),
    ],
    ids=["nan", "inf", "division by zero", "a root", "overflow", "overflow of whole numbers"],
)
def test_an_objective_without_a_value_is_a_failed_trial_and_not_without_end(objective, why, tmp_path):
    asked = []

    def counted(settings):
        asked.append(settings)
        assert len(asked) < 50, "it has no end"
        return {"stalls": 1}

    with pytest.raises(unfrag.UnfragError, match=f"none of 6 trials has a value; the last: .*{why}"):
        unfrag.tune(counted, WIDE, objective, runs=6, storage=tmp_path / "t.db")
    assert len(asked) == 6
    with pytest.raises(unfrag.UnfragError, match="none of 6 trials"):
        unfrag.tune(counted, WIDE, objective, runs=6, storage=tmp_path / "t.db")
    assert len(asked) == 6, "they count when it is taken up"


def test_trials_that_fail_are_said_and_the_others_count():
    tuning = unfrag.tune(lambda settings: {"left": max(settings["vm.min_free_kbytes"] - 3000, 0)}, WIDE, "1 / left", runs=30)
    assert 0 < len(tuning.failed) < 30 and f"{len(tuning.failed)} of them failed" in repr(tuning)
    assert all(settings["vm.min_free_kbytes"] <= 3000 and "ZeroDivisionError" in why for settings, why in tuning.failed)
    frame = tuning.to_pandas()
    assert len(frame) == 30 and frame["why"].notna().sum() == len(tuning.failed)
    assert tuning.best_settings["vm.min_free_kbytes"] > 3000
    assert len(tuning.plot().lines) == 2
    mean_of_none = unfrag.tune(valley, SETTINGS, "totals.stalls", runs=4, combine=lambda values: values[0] / (values[0] > 5000))
    assert all("combine=" in why for _, why in mean_of_none.failed)


def test_an_objective_that_gives_no_number_is_a_mistake():
    with pytest.raises(ValueError, match="a number is expected of the function, not NoneType"):
        unfrag.tune(valley, SETTINGS, lambda answer: None, runs=3)
    with pytest.raises(ValueError, match="objective: stalls \\+ is no expression"):
        unfrag.tune(valley, SETTINGS, "stalls +", runs=3)
    with pytest.raises(ValueError, match="a tuple is .least, greatest., and this has 3"):
        unfrag.tune(valley, {"vm.swappiness": (1, 2, 3)}, "totals.stalls", runs=3)


def test_what_a_tuning_cannot_take_is_said(tmp_path):
    (tmp_path / "notes.txt").write_text("no database")
    for options, kind, says in [
        ({"settings": {"vm.swappiness": (9, 1)}}, ValueError, "9 is above 1"),
        ({"first": [{"vm.nope": 1}]}, ValueError, "first: 'vm.nope' is none of the settings"),
        ({"storage": tmp_path / "nowhere" / "t.db"}, FileNotFoundError, "nowhere"),
        ({"storage": tmp_path / "notes.txt"}, ValueError, "a file of another kind"),
        ({"combine": lambda values: None}, TypeError, "combine: a number of this function is expected, not NoneType"),
        ({"executor": 3}, TypeError, "executor: a concurrent.futures.Executor"),
    ]:
        with pytest.raises(kind, match=says):
            unfrag.tune(valley, **({"settings": SETTINGS, "objective": "totals.stalls", "runs": 2} | options))
    assert (tmp_path / "notes.txt").read_text() == "no database"


def test_ranges_of_numpy_are_of_whole_numbers():
    import numpy

    tuning = unfrag.tune(hill, {"vm.min_free_kbytes": (numpy.int64(256), numpy.int64(1024))}, "stalls", runs=3, fixed={"best": 300})
    assert isinstance(tuning.best_settings["vm.min_free_kbytes"], int)
