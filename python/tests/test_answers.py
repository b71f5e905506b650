"""Answers as objects: short, typed, as they were, and the same in another process."""

import copy
import json
import os
import pickle
from pathlib import Path

import jsonschema
import pytest

import unfrag

SAMPLES = Path(__file__).parents[2] / "samples"
GCC, SECOND, BUILD = SAMPLES / "gcc-768M.unfrag", SAMPLES / "fragmented-384M.unfrag", SAMPLES / "small-build.toml"
RINGS, LOOKS = SAMPLES / "rings-1024M.unfrag", SAMPLES / "looks-5-days.tar.zst"
SLAB, LOG = SAMPLES / "slab-find.unfrag", SAMPLES / "page-allocation-failure.log"

ANSWERS = {
    "replay": lambda: unfrag.replay(GCC, kernels=["6.1", "6.18"]),
    "replay of the second sample": lambda: unfrag.replay(SECOND, kernels=["2.6.32", "6.12"], members=3),
    "replay that broke down": lambda: unfrag.replay(SECOND, members=3, settings={"vm.min_free_kbytes": 65536}),
    "replay as observed": lambda: unfrag.replay(GCC, mode="observe"),
    "replay of a window": lambda: unfrag.replay(SECOND, members=1, since=10),
    "simulate": lambda: unfrag.simulate(BUILD),
    "simulate an old kernel": lambda: unfrag.simulate(SAMPLES / "recorded-build.toml", kernel="2.6.32"),
    "experiment": lambda: unfrag.experiment("one-time", runs=1),
    "experiment that no source measured": lambda: unfrag.experiment("java-heap", kernels="6.18", machines="1GiB", runs=1),
    "doctor": lambda: unfrag.doctor(GCC),
    "doctor of the second sample": lambda: unfrag.doctor(SECOND, need=["200x32M", "1x2M"], after="compact"),
    "doctor of this host": lambda: unfrag.doctor(seconds=0),
    "inspect": lambda: unfrag.inspect(SECOND),
    "inspect this host": lambda: unfrag.inspect(),
    "explain": lambda: unfrag.explain(LOG),
    "explain another": lambda: unfrag.explain(SAMPLES / "fragmented-384M.log"),
    "summary": lambda: unfrag.summary(GCC),
    "summary of slab events": lambda: unfrag.summary(SLAB),
    "blame": lambda: unfrag.blame(SECOND),
    "wakes": lambda: unfrag.wakes(RINGS),
    "wakes by program": lambda: unfrag.wakes(SECOND),
    "wakes of a window": lambda: unfrag.wakes(RINGS, since=1, until=2),
    "account": lambda: unfrag.account(SECOND),
    "account of this host": lambda: unfrag.account(),
    "account of two snapshots": lambda: unfrag.account(SECOND, snapshots=["begin", "end"]),
    "frames": lambda: unfrag.frames(os.getpid()),
    "forecast": lambda: unfrag.forecast(LOOKS, need="130x256K"),
    "forecast of more than there is": lambda: unfrag.forecast(LOOKS, need="1000000x4K"),
    "profile": lambda: unfrag.profile(GCC),
    "profile of a window": lambda: unfrag.profile(GCC, since=1, until=3),
    "slab": lambda: unfrag.slab(SLAB),
}


@pytest.fixture(scope="module", params=ANSWERS)
def answer(request):
    return ANSWERS[request.param]()


def test_it_is_what_its_class_says(answer):
    """Every key has a type, and every value is of it: an attribute that an editor offers is there."""
    schema = type(answer).schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(answer.to_dict(), schema)
    walk(answer)


def walk(part):
    """Each key of each part as an attribute."""
    from unfrag.parts import hints

    for name in [*hints(type(part)), *part]:
        value = part[name]
        for inner in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(inner, unfrag.Part):
                walk(inner)
            elif isinstance(inner, unfrag.Named):
                for v in inner.values():
                    if isinstance(v, unfrag.Part):
                        walk(v)


def test_its_repr_is_short_and_its_text_is_what_the_command_prints(answer):
    assert len(repr(answer)) < 200 and "\n" not in repr(answer)
    assert repr(answer).startswith(f"<unfrag.{type(answer).__name__} ")
    assert str(answer) == answer.text.rstrip("\n") and "\n" in str(answer)
    parts = [v for name in answer for v in [answer[name]] if isinstance(v, (unfrag.Part, unfrag.Named))]
    assert all(len(repr(part)) < 200 for part in parts)


def test_it_is_the_same_elsewhere(answer):
    for other in (pickle.loads(pickle.dumps(answer)), copy.deepcopy(answer)):
        assert other == answer and type(other) is type(answer) and hash(other) == hash(answer)
        assert (other.text, other.html, other.svg) == (answer.text, answer.html, answer.svg)
        assert other.summary() == answer.summary() and other.rows() == answer.rows()


def test_what_is_handed_out_is_a_copy(answer):
    before = json.dumps(answer.to_dict())
    handed = answer.to_dict()
    for value in handed.values():
        if isinstance(value, (dict, list)):
            value.clear()
    handed.clear()
    name = next(iter(answer))
    with pytest.raises(AttributeError, match="an answer stays as it is"):
        setattr(answer, name, None)
    assert json.dumps(answer.to_dict()) == before


def test_no_debug_string_of_another_language(answer):
    text = json.dumps(answer.to_dict()["kernels"][0]["settings"]) if isinstance(answer, unfrag.Replay) and answer.kernels else ""
    for sign in ("Some(", "None", "{ ", "::", "true }"):
        assert sign not in text


def test_an_editor_completes_names():
    answer = unfrag.doctor(GCC)
    assert {"zones", "huge_pages", "advice", "to_pandas"} <= set(dir(answer))
    assert {"nr_free_pages", "pgfault"} & set(dir(unfrag.simulate(BUILD).counters))
    annotations = unfrag.Replay.__annotations__
    assert "kernels" in annotations and annotations["kernels"] == "list[Kernel]"
    replay = unfrag.replay(GCC, members=1)
    assert "trust" in replay and replay.trust.questions[0].because
    assert "class_" in dir(replay.kernels[0].what_if) and replay.kernels[0].what_if.class_.asked == "own"
    with pytest.raises(AttributeError, match="no 'nope' in this part"):
        replay.kernels[0].nope


def test_parts_and_names_are_typed_at_run_time():
    from unfrag.results import replay as kinds

    answer = unfrag.replay(GCC, kernels="6.18", members=3)
    kernel = answer.kernels[0]
    assert type(kernel) is kinds.Kernel and type(kernel.samples[0].zones[0]) is kinds.ZoneSample
    bars = [c.bar for c in kernel.what_if.changes if c.bar]
    assert bars and all(isinstance(bar, tuple) for bar in bars)
    assert kernel.totals.allocations == kernel.totals["allocations"] == dict(kernel.totals)["allocations"]
    assert kernel.samples[0].zones[1].unusable_index["9"] == kernel.samples[0].zones[1].unusable_index[9]
    assert pickle.loads(pickle.dumps(kernel)) == kernel and pickle.loads(pickle.dumps(kernel.totals)) == kernel.totals
