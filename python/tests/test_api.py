"""What the command answers, Python answers: of paths, and of recordings as objects."""

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unfrag

SAMPLES = Path(__file__).parents[2] / "samples"
GCC, SLAB = SAMPLES / "gcc-768M.unfrag", SAMPLES / "slab-find.unfrag"
TRACES = Path(__file__).parents[2] / "crates" / "unfrag-linux" / "tests" / "trace_fixtures"


@pytest.mark.parametrize("name", ["replay", "summary", "blame", "profile", "doctor", "inspect"])
def test_a_recording_stands_wherever_a_path_does(name):
    options = {"members": 1} if name == "replay" else {}
    with unfrag.Recording(GCC) as recording:
        asked = getattr(unfrag, name)
        answer = asked(GCC, **options)
        assert asked(recording, **options) == answer
        assert getattr(recording, name)(**options) == answer
        assert "Args:" in getattr(recording, name).__doc__


def test_a_slab_recording_as_an_object():
    recording = unfrag.Recording(SLAB)
    answer = recording.slab(allocators=["slub", "slab"], slub_max_order=0)
    assert answer.to_dict()["allocators"] == unfrag.slab(SLAB, allocators=["slub", "slab"], slub_max_order=0).to_dict()["allocators"]
    assert [a.allocator.lower() for a in answer.allocators] == ["slub", "slab"]
    for wrong, says in [
        ({"allocators": "slob"}, "choose of slab, slub, slqb"),
        ({"allocators": []}, "allocators: none is given"),
        ({"rules": "new"}, "choose one of modern, 2.6.28"),
        ({"slub_max_order": 11}, "slub_max_order=11: .* from 0 to 10"),
        ({"slub_min_order": 3, "slub_max_order": 1}, "above the largest"),
        ({"cpus": 0}, "cpus"),
    ]:
        with pytest.raises(ValueError, match=says):
            recording.slab(**wrong)


def test_a_closed_recording_says_so_and_its_tables_stay():
    with unfrag.Recording(GCC) as recording:
        events = recording.events()
        assert len(recording) == len(events) and recording
    assert "closed" in repr(recording)
    for ask in (recording.events, lambda: recording.cpus, recording.replay):
        with pytest.raises(ValueError, match="this recording is closed"):
            ask()
    assert events.to_pandas()["cpu"].max() == 1


def events_in(recording):
    return (os.getpid(), len(recording), recording.digest)


def test_a_recording_goes_to_other_processes_by_path_and_content(tmp_path):
    file = tmp_path / "host.unfrag"
    shutil.copy(GCC, file)
    recording = unfrag.Recording(file)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pid, events, digest = pool.apply(events_in, (recording,))
    assert pid != os.getpid() and (events, digest) == (len(recording), recording.digest)
    sent = pickle.dumps(recording)
    assert len(sent) < 2000
    assert pickle.loads(sent) == recording and hash(pickle.loads(sent)) == hash(recording)
    shutil.copy(SAMPLES / "fragmented-384M.unfrag", file)
    with pytest.raises(unfrag.UnfragError, match="is not the recording that was sent"):
        pickle.loads(sent)


def test_a_trace_becomes_a_recording(tmp_path):
    trace = next(iter(sorted(TRACES.rglob("*.dat"))), None)
    if trace is None:
        pytest.skip("no trace among the fixtures")
    out = tmp_path / "made.unfrag"
    recording = unfrag.import_(trace, out, release="6.1.0", settings={"vm.swappiness": 10})
    assert out.exists() and len(recording) > 0 and recording.facts["vm.swappiness"] == "10"
    raw = unfrag.Recording(trace, release="6.1.0")
    assert len(raw) == len(recording) and raw.summary().events == recording.summary().events
    with pytest.raises(unfrag.UnfragError, match="is an .unfrag file already"):
        unfrag.import_(out, tmp_path / "again.unfrag")
    with pytest.raises(ValueError, match="is the file that is read"):
        unfrag.import_(trace, trace)
    with pytest.raises(unfrag.UnfragError, match="vm.nope"):
        unfrag.import_(trace, tmp_path / "x.unfrag", settings={"vm.nope": 1})


def tracing():
    """Whether this host can be traced."""
    mounted = any(Path(p, "events/kmem").is_dir() for p in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"))
    return mounted and os.geteuid() == 0


def test_a_command_is_recorded(tmp_path):
    if not tracing():
        with pytest.raises(unfrag.UnfragError):
            unfrag.record(["ls", "/"], output=tmp_path / "ls.unfrag")
        pytest.skip("this host cannot be traced: no tracefs, or not root")
    recording = unfrag.record(["ls", "/"], output=tmp_path / "ls.unfrag", processes=True)
    assert len(recording) > 0 and recording.facts["scope"] == "command"
    assert recording.profile().recording.events == len(recording)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "give a command, or system=True"),
        ({"command": "ls", "seconds": 3}, "seconds= is for a recording without a command"),
        ({"command": ["ls"], "anonymous": True, "processes": True}, "anonymous= leaves out"),
    ],
)
def test_what_cannot_be_recorded(options, says):
    with pytest.raises(ValueError, match=says):
        unfrag.record(**options)


@pytest.mark.parametrize(
    ("module", "extra", "ask"),
    [
        ("pandas", "pandas", "unfrag.doctor(GCC).to_pandas()"),
        ("pyarrow", "arrow", "unfrag.doctor(GCC).to_arrow()"),
        ("polars", "polars", "unfrag.doctor(GCC).to_polars()"),
        ("matplotlib", "plot", "unfrag.doctor(GCC).plot()"),
        ("optuna", "tune", "unfrag.tune(unfrag.simulate, {'vm.swappiness': (1, 2)}, 'elapsed_ns', runs=1)"),
        ("pyarrow", "arrow", "unfrag.sweep(unfrag.simulate, {'seed': [1]}, out='rows', executor=unfrag.executors.Here())"),
        ("pandas", "pandas", "unfrag.Recording(GCC).events().to_pandas()"),
        ("ray", "ray", "__import__('unfrag.executors').executors.RayExecutor()"),
    ],
)
def test_a_library_that_is_missing_is_named_with_its_extra(module, extra, ask, tmp_path):
    program = f"import sys; sys.modules[{module!r}] = None; import unfrag, unfrag.executors; GCC = {str(GCC)!r}; {ask}"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    said = done.stderr.strip().splitlines()[-1]
    assert said == f"unfrag.errors.MissingExtraError: {module} is not installed: pip install 'unfrag[{extra}]' brings it"


def test_every_extra_is_declared_and_on_the_page():
    if sys.version_info < (3, 11):
        pytest.skip("tomllib is of Python 3.11")
    import tomllib

    from unfrag.optional import EXTRAS

    root = Path(__file__).parents[2]
    declared = tomllib.loads((root / "python/pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (root / "docs/ask-from-python.md").read_text()
    assert set(EXTRAS.values()) <= set(declared)
    for name in declared.keys() - {"test"}:
        assert f"`{name}`" in page, f"the page does not name the extra {name}"
