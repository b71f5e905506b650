"""What callers give, in the forms that they have it, and what they hear if it cannot be taken."""

import datetime
import io
from pathlib import Path

import numpy
import pandas
import pytest

import unfrag
from unfrag import given

SAMPLES = Path(__file__).parents[2] / "samples"
GCC, BUILD, LOG = SAMPLES / "gcc-768M.unfrag", SAMPLES / "small-build.toml", SAMPLES / "page-allocation-failure.log"


def test_one_string_is_one():
    answer = unfrag.replay(GCC, kernels="6.18", members=1)
    assert [k.kernel for k in answer.kernels] == ["6.18"]
    assert unfrag.slab(SAMPLES / "slab-find.unfrag", allocators="slub").allocators[0].allocator.lower() == "slub"


def test_numbers_of_numpy_are_numbers():
    seeds = [unfrag.simulate(BUILD, seed=seed, settings={"vm.min_free_kbytes": kb}) for seed, kb in (
        (3, 4096), (numpy.int64(3), numpy.int32(4096)), (numpy.uint8(3), numpy.float64(4096.0)),
    )]
    assert seeds[0] == seeds[1] == seeds[2] and seeds[0].seed == 3
    assert given.setting("x", numpy.bool_(True)) == given.setting("x", True) == "1"
    assert given.setting("x", numpy.array([256, 32])[0]) == "256"


def test_times_of_numpy_and_pandas_are_times():
    ten = given.moment("since", 10)
    for same in (pandas.Timedelta("10s"), numpy.timedelta64(10, "s"), numpy.timedelta64(10**10, "ns"), datetime.timedelta(seconds=10)):
        assert given.moment("since", same) == ten == (False, 10**10)
    date = datetime.datetime(2026, 11, 29, 3, 4, 5)
    for same in (pandas.Timestamp(date), numpy.datetime64("2026-11-29T03:04:05"), date.astimezone(datetime.timezone.utc)):
        assert given.moment("since", same) == given.moment("since", date)


def test_what_is_computed_is_none_in_and_out():
    recorded = unfrag.simulate(BUILD, settings={"vm.min_free_kbytes": None})
    assert recorded.counters == unfrag.simulate(BUILD).counters
    replay = unfrag.replay(GCC, kernels=["6.1", "6.18"], members=1, settings={"vm.min_free_kbytes": None})
    for kernel in replay.kernels:
        assert kernel.settings["vm.min_free_kbytes"] is None
        again = {k: kernel.settings[k] for k in ("vm.min_free_kbytes", "vm.watermark_scale_factor", "vm.swappiness")}
        assert unfrag.replay(GCC, kernels=kernel.kernel, members=1, settings=again).kernels[0].settings == kernel.settings
    with pytest.raises(unfrag.UnfragError, match="vm.min_free_kbytes=0"):
        unfrag.replay(GCC, settings={"vm.min_free_kbytes": 0})


@pytest.mark.parametrize(
    ("ask", "kind", "says"),
    [
        (lambda: unfrag.replay(GCC, kernels=6.18), TypeError, "kernels: a str, or a sequence of str, is expected, not float"),
        (lambda: unfrag.replay(GCC, kernels=[6.18]), TypeError, r"not float \(6.18\)"),
        (lambda: unfrag.replay(GCC, settings=["vm.swappiness=1"]), TypeError, "settings: a mapping such as"),
        (lambda: unfrag.replay(GCC, settings={"vm.swappiness": object()}), TypeError, r"settings\['vm.swappiness'\]: a number"),
        (lambda: unfrag.replay(GCC, settings={3: 1}), TypeError, "a name in settings: a str"),
        (lambda: unfrag.replay(GCC, members="21"), TypeError, "members: a whole number is expected, not str"),
        (lambda: unfrag.replay(GCC, members=2.5), TypeError, "members: a whole number"),
        (lambda: unfrag.replay(None), TypeError, "recording: a path .* is expected, not NoneType"),
        (lambda: unfrag.replay(GCC, since="02:00"), TypeError, "since: a datetime, a timedelta or a number of seconds"),
        (lambda: unfrag.replay(GCC, members=-1), ValueError, "members=-1: a whole number from 0 to"),
        (lambda: unfrag.replay(GCC, memory=2**64), ValueError, "memory=18446744073709551616: a whole number"),
        (lambda: unfrag.simulate(BUILD, seed=-1), ValueError, "seed=-1: a whole number"),
        (lambda: unfrag.experiment("one-time", runs=0), ValueError, "runs=0: a whole number from 1"),
        (lambda: unfrag.tune(unfrag.simulate, {"vm.swappiness": (0, 9)}, "seed", runs=0), ValueError, "runs=0"),
        (lambda: unfrag.replay(GCC, since=1e12), ValueError, "since: .* is later than any recording's end"),
        (lambda: unfrag.replay(GCC, since=1e300), ValueError, "since: .* is later than"),
        (lambda: unfrag.replay(GCC, since=pandas.NaT), ValueError, "since: NaT is no time"),
        (lambda: unfrag.replay(GCC, since=numpy.datetime64("NaT")), ValueError, "since: NaT is no time"),
        (lambda: unfrag.replay(GCC, progress=3), TypeError, "progress: a function .* is expected, not int"),
        (lambda: unfrag.replay(GCC, since=-1), ValueError, "since: -1 is before the beginning"),
        (lambda: unfrag.simulate(["a", "b"]), TypeError, "scenario: a path"),
        (lambda: unfrag.simulate(BUILD, seed=1.0), TypeError, "seed: a whole number is expected, not float"),
        (lambda: unfrag.explain(7), TypeError, "log: a text, bytes, an open file or a pathlib.Path is expected, not int"),
        (lambda: unfrag.sweep(unfrag.simulate, {"seed": 3}, out="x", executor=object()), TypeError, r"grid\['seed'\]: a list"),
        (lambda: unfrag.sweep(unfrag.simulate, {"kernel": "6.1"}, out="x", executor=object()), TypeError, "a list of values"),
        (lambda: unfrag.sweep("replay", {"seed": [3]}, out="x"), TypeError, "function: a function such as unfrag.replay"),
        (lambda: unfrag.sweep(unfrag.simulate, {"seed": [3]}, out="x", executor=3), TypeError, "executor: a concurrent"),
        (lambda: unfrag.tune("replay", {"vm.swappiness": (0, 9)}, "x", runs=1), TypeError, "function: a function"),
        (lambda: unfrag.tune(unfrag.simulate, {"vm.swappiness": (0, 9)}, None, runs=1), TypeError, "objective: an expression"),
        (lambda: unfrag.tune(unfrag.simulate, ["vm.swappiness"], "x", runs=1), TypeError, "settings: a mapping such as"),
        (lambda: unfrag.tune(unfrag.simulate, {"vm.swappiness": 3}, "x", runs=1), TypeError, "a tuple .least, greatest."),
    ],
)
def test_errors_say_what_was_expected(ask, kind, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=says):
        ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda: unfrag.Recording("nowhere.unfrag"),
        lambda: unfrag.replay("nowhere.unfrag"),
        lambda: unfrag.simulate("nowhere.toml"),
        lambda: unfrag.simulate(BUILD, costs="nowhere.toml"),
        lambda: unfrag.doctor("nowhere"),
        lambda: unfrag.inspect("nowhere"),
        lambda: unfrag.explain(Path("nowhere.log")),
        lambda: unfrag.summary("nowhere.unfrag"),
        lambda: unfrag.blame("nowhere.unfrag"),
        lambda: unfrag.profile("nowhere.unfrag"),
        lambda: unfrag.slab("nowhere.unfrag"),
        lambda: unfrag.import_("nowhere.dat", "x.unfrag"),
        lambda: unfrag.Input("nowhere"),
    ],
)
def test_a_missing_file_is_what_python_calls_so(ask):
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        ask()
    assert caught.value.errno == 2


def test_names_that_a_recording_does_not_have():
    with unfrag.Recording(GCC) as recording:
        for ask, says in [
            (lambda: recording.files("nope"), "no file \"nope\": there are .*buddyinfo"),
            (lambda: recording.table("nope"), "no events of kind \"nope\": there are .*mm_page_alloc"),
            (lambda: recording.snapshot("nope", "buddyinfo"), "no snapshot \"nope\": the first is"),
            (lambda: recording.snapshot(recording.snapshots[0], "nope"), "has no file \"nope\": there are"),
        ]:
            with pytest.raises(KeyError, match=says) as caught:
                ask()
            assert isinstance(caught.value, unfrag.UnfragError) and str(caught.value).startswith(("no ", "snapshot "))


def test_a_log_as_text_as_bytes_as_a_file_and_as_a_path():
    text = LOG.read_text()
    answer = unfrag.explain(LOG)
    assert [r.order for r in answer.reports] == [4]
    with open(LOG) as as_text, open(LOG, "rb") as as_bytes:
        for log in (text, text.encode(), as_text, as_bytes, io.StringIO(text), io.BytesIO(text.encode()), text.splitlines()[0]):
            found = unfrag.explain(log)
            assert found == answer or log == text.splitlines()[0]
    said = unfrag.explain("nothing of it failed\nand nobody asked\n")
    assert not said.reports and not said.is_log and "nothing is known" in repr(said), "no log is no healthy one"
    assert unfrag.explain("").is_log is False


@pytest.mark.parametrize("name", ["nope.log", "/var/log/nope", "logs/my kernel log.txt", str(LOG)])
def test_a_path_in_a_str_is_no_healthy_log(name):
    with pytest.raises(ValueError, match="pathlib.Path"):
        unfrag.explain(name)


def test_a_recording_is_no_healthy_log():
    with pytest.raises(unfrag.UnfragError, match="it is a recording .*unfrag.summary"):
        unfrag.explain(GCC)
