"""Each question, as a notebook asks it."""

import copy
import datetime
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import unfrag

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
GCC = SAMPLES / "gcc-768M.unfrag"
BUILD = SAMPLES / "small-build.toml"
LOG = SAMPLES / "page-allocation-failure.log"
RINGS, LOOKS = SAMPLES / "rings-1024M.unfrag", SAMPLES / "looks-5-days.tar.zst"
FRAGMENTED = SAMPLES / "fragmented-384M.unfrag"
SLAB = SAMPLES / "slab-find.unfrag"


def command() -> str | None:
    """The command line tool, if it has been built: that which `UNFRAG` names, or of a release, or an installed one."""
    if named := os.environ.get("UNFRAG"):
        return named
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = target / "release" / "unfrag"
    return str(built) if built.exists() else shutil.which("unfrag")


def with_rows():
    """Answers about what memory is used for, each with several rows."""
    return (unfrag.wakes(FRAGMENTED), unfrag.account(FRAGMENTED), unfrag.frames(os.getpid()))


QUESTIONS = {
    "replay": (lambda: unfrag.replay(GCC), ["replay", str(GCC)]),
    "simulate": (
        lambda: unfrag.simulate(BUILD, kernel="2.6.32", seed=3, settings={"vm.min_free_kbytes": 4096}),
        ["simulate", str(BUILD), "--kernel", "2.6.32", "--seed", "3", "--set", "vm.min_free_kbytes=4096"],
    ),
    "inspect": (lambda: unfrag.inspect(GCC), ["inspect", str(GCC)]),
    "explain": (lambda: unfrag.explain(LOG), ["explain", str(LOG)]),
    "summary": (lambda: unfrag.summary(GCC), ["summary", str(GCC)]),
    "blame": (lambda: unfrag.blame(GCC), ["blame", str(GCC)]),
    "wakes": (lambda: unfrag.wakes(RINGS), ["blame", "--wakes", str(RINGS)]),
    "account": (lambda: unfrag.account(FRAGMENTED), ["account", str(FRAGMENTED)]),
    "what grew": (
        lambda: unfrag.account(FRAGMENTED, snapshots=["begin", "end"]),
        ["account", str(FRAGMENTED), "--snapshot", "begin", "--snapshot", "end"],
    ),
    "forecast": (
        lambda: unfrag.forecast(LOOKS, need="130x256K", seed=2),
        ["forecast", str(LOOKS), "--need", "130x256K", "--seed", "2"],
    ),
    "profile": (lambda: unfrag.profile(GCC), ["profile", str(GCC)]),
    "slab": (lambda: unfrag.slab(SLAB), ["slab", str(SLAB)]),
    "a window": (
        lambda: unfrag.replay(FRAGMENTED, members=1, since=10, until=datetime.timedelta(seconds=20)),
        ["replay", str(FRAGMENTED), "--members", "1", "--from", "10s", "--to", "20s"],
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_what_the_command_prints(name):
    tool = command()
    if tool is None:
        pytest.skip("the command has not been built")
    ask, arguments = QUESTIONS[name]
    answer = ask()

    def printed(*options):
        # As many columns as a notebook has.
        shown = os.environ | {"COLUMNS": "110", "LC_ALL": "C.UTF-8"}
        return subprocess.run([tool, *arguments, *options], check=True, capture_output=True, text=True, env=shown).stdout

    assert answer.to_dict() == json.loads(printed("--json"))
    assert answer.text.rstrip() == printed().rstrip()


def asked_of_the_command(*arguments):
    """What the command says by `--json` and on its screen."""
    tool = command()
    if tool is None:
        pytest.skip("the command has not been built")
    shown = os.environ | {"COLUMNS": "110", "LC_ALL": "C.UTF-8"}
    run = lambda *more: subprocess.run([tool, *arguments, *more], capture_output=True, text=True, env=shown).stdout
    return json.loads(run("--json")), run()


def test_doctor_answers_with_the_diagnosis():
    answer = unfrag.doctor(GCC)
    assert answer.huge_pages.now > 0
    assert {z.zone for z in answer.zones} == {"DMA", "DMA32"}
    assert answer.html.startswith("<!") and answer.text == str(answer) + "\n" and answer.needs is None
    said, shown = asked_of_the_command("doctor", str(GCC))
    assert said["diagnosis"] | {"needs": None} == answer.to_dict()
    assert shown == answer.text


def test_doctor_says_whether_a_need_can_be_met():
    both = unfrag.doctor(GCC, need=["20x2M", "4x4M"], after=["drop", "compact"])
    said, shown = asked_of_the_command("doctor", str(GCC), "--need", "20x2M", "--need", "4x4M", "--after", "drop,compact")
    assert both.needs.to_dict() == said["needs"] and both.text == shown
    assert both.needs.verdict == "yes" and [n.count for n in both.needs.each] == [4, 20]
    assert unfrag.doctor(GCC, need="100000x2M").needs.verdict == "no", "one string is one need"
    assert unfrag.doctor(GCC, huge=1).needs.each[0].bytes == 2 << 20
    for wrong, says in [
        ({"need": "many"}, "need: .*512x2M@node1"),
        ({"after": "drop"}, "after= is about a need"),
        ({"need": "1x2M", "after": "wait"}, "choose of drop, compact"),
        ({"huge": 0}, "huge=0: a whole number from 1 to"),
    ]:
        with pytest.raises(ValueError, match=says):
            unfrag.doctor(GCC, **wrong)


def test_parts_of_an_answer_are_objects():
    answer = unfrag.simulate(BUILD)
    assert answer.counters["pgfault"] == answer.counters.pgfault > 0
    assert "samples" in answer and "samples" in dir(answer) and len(answer) == len(answer.to_dict())
    with pytest.raises(AttributeError, match="no 'nothing' in this part of the answer; it has"):
        answer.nothing
    for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert other == answer and other.text == answer.text
    assert answer == unfrag.simulate(BUILD), "the same inputs give the same answer"
    assert answer != unfrag.simulate(BUILD, seed=2)


def test_rows_go_to_arrow_and_pandas():
    replay = unfrag.replay(GCC, kernels=["6.1", "6.18"])
    table, frame = replay.to_arrow(), replay.to_pandas()
    # 150 snapshots of two zones: as recorded, and under each of the two kernels.
    assert table.num_rows == len(frame) == 150 * 2 * 3
    assert set(frame["kernel"]) == {"recorded", "6.1", "6.18"}
    assert frame["free_blocks.0"].notna().all()
    assert len(unfrag.simulate(BUILD).to_pandas()) > 10
    assert len(unfrag.doctor(GCC).to_pandas()) == 2
    assert replay.to_polars().shape[0] == len(frame)
    for answer in (*with_rows(), unfrag.summary(GCC), unfrag.blame(GCC), unfrag.profile(FRAGMENTED), unfrag.slab(SLAB)):
        assert len(answer.to_pandas()) > 3, repr(answer)
    assert list(unfrag.explain(LOG).to_pandas()["order"]) == [4]


def test_an_answer_as_one_row():
    row = unfrag.replay(GCC, kernels=["6.1", "6.18"]).summary()
    assert row["6.18.totals.allocations"] > 0 and row["6.1.accuracy.free_pages_error.median"] < 0.1
    bar = {name: row[f"6.18.what_if.free_pages_end.{name}"] for name in ("low", "predicted", "high", "verdict")}
    assert bar["low"] <= bar["predicted"] <= bar["high"] and bar["verdict"] in ("more", "less", "same", None)
    assert row["6.1.what_if.free_pages_end.verdict"] is None, "it is the recorded kernel itself"
    assert not any(isinstance(value, (list, dict)) for value in row.values())
    assert unfrag.simulate(BUILD).summary()["counters.pgfault"] > 0


def test_pictures():
    import matplotlib

    matplotlib.use("agg")
    replay = unfrag.replay(GCC)
    axes = replay.plot()
    assert [line.get_label() for line in axes.lines] == ["recorded", "6.1"]
    assert len(axes.lines[0].get_xdata()) == 150
    assert unfrag.simulate(BUILD).plot(axes) is axes
    assert replay._repr_html_().startswith("<svg")
    assert unfrag.explain(LOG)._repr_html_().startswith("<pre>")
    unusable = replay.plot(metric="unusable_index.9")
    assert unusable.get_ylabel() == "unusable_index.9" and max(unusable.lines[0].get_ydata()) <= 1
    with pytest.raises(ValueError, match="metric='nothing': choose one of .*free_huge_blocks"):
        replay.plot(metric="nothing")


def test_progress_goes_to_a_function_or_a_bar():
    from tqdm import tqdm

    told = []
    unfrag.replay(GCC, progress=lambda done, total: told.append((done, total)))
    assert told and all(0 < done <= total for done, total in told) and told[-1][0] == told[-1][1]
    with open(os.devnull, "w") as nowhere, tqdm(file=nowhere) as bar:
        unfrag.replay(GCC, progress=bar)
        assert bar.n == bar.total == told[-1][1]


def test_bars_where_there_is_no_time():
    import matplotlib

    matplotlib.use("agg")
    doctor = unfrag.doctor(GCC)
    bars = [bar.get_height() for bar in doctor.plot().patches]
    assert [z.huge_pages.now for z in doctor.zones] == bars[: len(doctor.zones)]
    explain = unfrag.explain(LOG).plot()
    assert [label.get_text() for label in explain.get_yticklabels()] == ["order 4: fragmented"]
    experiment = unfrag.experiment("one-time", runs=1)
    assert experiment.plot().get_xlabel() == "elapsed_s"
    bar = experiment.plot(metric="huge_percent").patches[0]
    assert bar.get_width() == experiment.results[0].metrics.huge_percent.median
    with pytest.raises(ValueError, match="choose one of .*elapsed_s"):
        experiment.plot(metric="nothing")
    with pytest.raises(ValueError, match="one picture alone"):
        doctor.plot(metric="nothing")
    for answer in (*with_rows(), unfrag.summary(GCC), unfrag.blame(GCC), unfrag.profile(FRAGMENTED), unfrag.slab(SLAB)):
        assert len(answer.plot().patches) > 3
        with pytest.raises(ValueError, match="choose one of"):
            answer.plot(metric="nothing")


@pytest.mark.parametrize(
    "ask",
    [
        lambda **tell: unfrag.replay(GCC, members=1, **tell),
        lambda **tell: unfrag.simulate(BUILD, **tell),
        lambda **tell: unfrag.experiment("one-time", runs=1, **tell),
    ],
    ids=["replay", "simulate", "experiment"],
)
def test_progress_ends_at_all_of_it(ask):
    told = []
    ask(progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] > 0
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda: unfrag.replay("nowhere"), unfrag.UnfragError, "nowhere: No such file"),
        (lambda: unfrag.replay(GCC, kernels=["7.0"]), unfrag.UnfragError, "no kernel `7.0`.*6.18"),
        (lambda: unfrag.replay(GCC, settings={"vm.foo": 1}), unfrag.UnfragError, "vm.foo.*vm.min_free_kbytes"),
        (lambda: unfrag.replay(GCC, start="soon"), ValueError, "start=\"soon\": choose one of auto"),
        (lambda: unfrag.replay(GCC, snapshots=[SAMPLES]), unfrag.UnfragError, "holds its snapshots already"),
        (lambda: unfrag.simulate(BUILD, kernel="1.0"), unfrag.UnfragError, "1.0"),
        (lambda: unfrag.simulate(BUILD, seed=-1), ValueError, "seed=-1: a whole number from 0 to"),
        (lambda: unfrag.experiment("nothing"), ValueError, "choose one of highorder"),
        (lambda: unfrag.doctor(BUILD), unfrag.UnfragError, "small-build.toml"),
        (lambda: unfrag.doctor(GCC, snapshot="x"), unfrag.UnfragError, "no snapshot `x`"),
        (lambda: unfrag.doctor(GCC, seconds=-1), ValueError, "seconds"),
        (lambda: unfrag.inspect(LOG), unfrag.UnfragError, "page-allocation-failure.log"),
        (lambda: unfrag.explain(str(LOG)), ValueError, "is a file.*give pathlib.Path"),
    ],
)
def test_errors_say_what_is_wrong_and_the_way_out(ask, error, says):
    with pytest.raises(error, match=says):
        ask()


def test_progress_is_told_and_may_stop_the_work():
    seen = []
    unfrag.replay(GCC, members=21, reclaim="modelled", progress=lambda done, total: seen.append((done, total)))
    assert seen and all(0 <= done <= total for done, total in seen)

    class Enough(Exception):
        pass

    def stop(done, total):
        raise Enough

    begin = time.monotonic()
    with pytest.raises(Enough):
        unfrag.experiment("highorder", progress=stop)
    assert time.monotonic() - begin < 20, "it stops at the first report"


def test_ctrl_c_stops_long_work_within_a_second():
    program = textwrap.dedent(
        """
        import unfrag
        print("ready", flush=True)
        unfrag.experiment("highorder", runs=1000)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in said and "panicked" not in said
    assert time.monotonic() - begin < 1


def test_other_threads_run_meanwhile():
    import threading

    counted = 0
    stops = threading.Event()

    def count():
        nonlocal counted
        while not stops.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    unfrag.replay(GCC)
    spent = time.monotonic() - begin
    stops.set()
    thread.join()
    assert counted > spent * 100, "the interpreter lock is released"


@pytest.mark.parametrize(
    "program",
    [
        "threading.Thread(target=unfrag.replay, args=[GCC], kwargs={'members': 21}, daemon=True).start(); time.sleep(0.3)",
        "threading.Thread(target=unfrag.replay, args=[GCC], kwargs={'members': 1}).start()",
        "atexit.register(unfrag.inspect, GCC)",
        "unfrag.Recording(GCC).events().to_arrow()",
    ],
    ids=["a thread that is left alone", "a thread that is waited for", "a question at the very end", "a table"],
)
def test_the_interpreter_ends_quietly_whatever_is_under_way(program):
    text = f"import atexit, threading, time, unfrag; GCC = {str(GCC)!r}; {program}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_of_a_process_of_which_there_is_none_and_needs_that_are_none():
    with pytest.raises(unfrag.UnfragError, match="process"):
        unfrag.frames((1 << 22) + 1)
    with pytest.raises(ValueError, match="of=0"):
        unfrag.frames(0)
    with pytest.raises(TypeError, match="of: a whole number"):
        unfrag.frames(1.5)
    with pytest.raises(ValueError, match="need"):
        unfrag.forecast(LOOKS, need="many")
    with pytest.raises(TypeError, match="need: a str is expected"):
        unfrag.forecast(LOOKS, need=None)
    with pytest.raises(ValueError, match="page_size=4000: choose one of 4096"):
        unfrag.account(FRAGMENTED, page_size=4000)
    for every in ("1s", True, datetime.timedelta(seconds=1)):
        with pytest.raises(TypeError, match="every: a number of seconds"):
            unfrag.account(every=every)
    with pytest.raises(TypeError, match="snapshots: a str, or a sequence"):
        unfrag.account(FRAGMENTED, snapshots={"begin", "end"})
    with pytest.raises(ValueError, match="every=0"):
        unfrag.account(every=0)
    with pytest.raises(ValueError, match="leave later= and snapshots= out"):
        unfrag.account(every=1, snapshots="begin")
    with pytest.raises(unfrag.UnfragError, match="one look"):
        unfrag.forecast("/proc", need="1x2M")
    grown = unfrag.account(FRAGMENTED, snapshots=["begin", "end"]).growth
    assert grown is not None and unfrag.account(FRAGMENTED).growth is None
