"""Tuning: the settings for which an objective is best, with Optuna.

Each trial asks Optuna for settings, asks the question with them (at one point or several, such as the recordings of a fleet),
and tells Optuna the objective. The seed of a trial follows from the seed of the tuning and the trial's number, so a tuning that
is resumed from its storage goes the same way as one that was never interrupted.
"""

from __future__ import annotations

import ast
import errno
import math
import operator
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeAlias

from . import content, guard
from ._unfrag import UnfragError
from .executors import Here
from .given import whole, wrong
from .optional import library
from .pictures import axes
from .progress import Progress, teller
from .sweeping import Workers, about, contents, key, points

if TYPE_CHECKING:
    import matplotlib.axes
    import optuna
    import pandas

#: The values of a setting: a range of whole numbers or of real ones, or a list of choices.
Values: TypeAlias = tuple[int, int] | tuple[float, float] | Sequence[Any]

#: Ranges that reach over so many times their least value are searched by orders of magnitude.
_WIDE = 100

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    # Of whole numbers, a power may have more digits than memory holds.
    ast.Pow: lambda base, exponent: float(base) ** float(exponent),
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


def metric(expression: str, data: Mapping[str, Any]) -> float:
    """The value of an expression over what an answer has, such as ``counters.allocstall + counters.pgmigrate_success / 1e3``.

    It has numbers, ``+ - * / **``, ``min``, ``max``, ``abs``, and dotted names; ``kernels[0].totals.allocstall`` reaches into
    lists.

    Raises:
        ValueError: a name or its value is unknown, or the expression has something else.
        ArithmeticError: it has no value, such as a division by zero.
    """

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.operand))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            return _FUNCTIONS[node.func.id](*map(value, node.args))
        number = found(node)
        if number is None:
            raise ValueError(f"objective: the answer says that {ast.unparse(node)} is not known")
        return number

    def found(node: ast.AST) -> Any:
        name = ast.unparse(node)
        try:
            if isinstance(node, ast.Name):
                return data[node.id]
            if isinstance(node, ast.Attribute):
                return found(node.value)[node.attr]
            if isinstance(node, ast.Subscript):
                return found(node.value)[ast.literal_eval(node.slice)]
        except (KeyError, IndexError, TypeError):
            raise ValueError(f"objective: the answer has no {name}") from None
        raise ValueError(f"objective: {name} is no number, name or operation that is known")

    try:
        parsed = ast.parse(expression, mode="eval").body
    except SyntaxError as e:
        raise ValueError(f"objective: {expression} is no expression: {e.msg}") from None
    result = value(parsed)
    if isinstance(result, complex):
        raise ArithmeticError(f"{expression} is {result}")
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        raise ValueError(f"objective: {expression} is no number, but {result!r:.80}")
    return float(result)


class Tuning:
    """What a tuning found."""

    def __init__(self, study: optuna.Study, expression: str) -> None:
        #: Optuna's study.
        self.study = study
        self._expression = expression

    @property
    def best_settings(self) -> dict[str, Any]:
        """The settings for which the objective was best."""
        return dict(self.study.best_params)

    @property
    def best_value(self) -> float:
        """The objective there."""
        return float(self.study.best_value)

    @property
    def failed(self) -> list[tuple[dict[str, Any], str]]:
        """The settings of trials that have no value, each with what was wrong."""
        return [(dict(t.params), t.user_attrs[_WHY]) for t in self.study.get_trials(deepcopy=False) if _WHY in t.user_attrs]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each trial: ``number``, ``value``, ``state``, the settings, and ``why`` it has no value."""
        library("pandas")
        frame = self.study.trials_dataframe(attrs=("number", "value", "state", "params"))
        frame = frame.rename(columns=lambda c: c.removeprefix("params_"))
        frame["why"] = [t.user_attrs.get(_WHY) for t in self.study.get_trials(deepcopy=False)]
        found: pandas.DataFrame = frame
        return found

    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws the objective by trial, and the best so far; returns the axes."""
        drawn: matplotlib.axes.Axes = axes(ax)
        frame = self.to_pandas().dropna(subset=["value"])
        drawn.plot(frame["number"], frame["value"], "o", label="trial")
        best = frame["value"].cummin() if self.study.direction.name == "MINIMIZE" else frame["value"].cummax()
        drawn.plot(frame["number"], best, label="best so far")
        drawn.set_xlabel("trial")
        drawn.set_ylabel(self._expression)
        drawn.legend()
        return drawn

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in self.best_settings.items())
        failed = f", {len(self.failed)} of them failed" if self.failed else ""
        said = f"{self._expression} = {self.best_value:g} at {settings}, {len(self.study.trials)} trials{failed}"
        return f"<unfrag.Tuning: {said}>"


#: Where a trial says why it has no value.
_WHY = "why"


class Mistake(Exception):
    """What no settings can mend: the question is wrong, or the objective has no value."""


class _Objective:
    """The value of the objective at a point. It is computed where the question is answered, so that no answer travels."""

    def __init__(self, function: Callable[..., Any], objective: str | Callable[[Any], float]) -> None:
        self._function, self._objective = function, objective

    def __call__(self, **point: Any) -> dict[str, Any]:
        try:
            answer = self._function(**point)
        except UnfragError:
            raise
        except ValueError as e:
            raise Mistake(str(e)) from e
        try:
            value = self._value(answer)
        except ArithmeticError as e:
            return {"value": None, "why": f"the objective has no value there: {type(e).__name__}: {e}"}
        if not math.isfinite(value):
            return {"value": None, "why": f"the objective is {value} there"}
        return {"value": value, "why": None}

    def _value(self, answer: Any) -> float:
        if isinstance(self._objective, str):
            try:
                return metric(self._objective, answer.to_dict() if hasattr(answer, "to_dict") else answer)
            except ValueError as e:
                raise Mistake(str(e)) from e
        value = self._objective(answer)
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise Mistake(f"objective: a number is expected of the function, not {type(value).__name__} ({value!r:.60})")
        return float(value)


def _suggest(trial: Any, name: str, values: Values) -> Any:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Sequence):
        wrong(f"settings[{name!r}]", values, "a tuple (least, greatest), or a list of choices,")
    if not isinstance(values, tuple):
        return trial.suggest_categorical(name, list(values))
    if len(values) != 2:
        raise ValueError(f"settings[{name!r}]: a tuple is (least, greatest), and this has {len(values)} values; choices are a list")
    low: Any = values[0]
    high: Any = values[1]
    if low > high:
        raise ValueError(f"settings[{name!r}]: a tuple is (least, greatest), and {low} is above {high}")
    log = low > 0 and high >= low * _WIDE
    # Whole numbers of numpy are some as well.
    if hasattr(low, "__index__") and hasattr(high, "__index__"):
        return trial.suggest_int(name, operator.index(low), operator.index(high), log=bool(log))
    return trial.suggest_float(name, float(low), float(high), log=bool(log))


def tune(
    function: Callable[..., Any],
    settings: Mapping[str, Values],
    objective: str | Callable[[Any], float],
    *,
    runs: int,
    fixed: Mapping[str, Any] | None = None,
    over: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]] = ({},),
    combine: Callable[[Sequence[float]], float] = statistics.fmean,
    executor: Executor | Callable[[], Executor] | None = None,
    maximize: bool = False,
    first: Sequence[Mapping[str, Any]] = (),
    seed: int = 1,
    storage: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Finds the settings for which an objective is best.

    Args:
        function: such as ``unfrag.simulate`` or ``unfrag.replay``: it takes ``settings=`` and the fixed parameters.
        settings: what may be set: a tuple ``(least, greatest)`` of numbers, or a list of choices, by sysctl.
        objective: an expression over what the answer has (see :func:`metric`), or a function of the answer.
        runs: trials in all; those in the storage count. A trial asks the question once at each point of ``over``.
        fixed: parameters of every run.
        over: points at which the question is asked with each settings, as the grid of a sweep: recordings of a fleet, or
            several seeds.
        combine: what makes one value of those of the points: their mean, or ``max`` for the worst of them.
        executor: who computes the points of a trial, as for a sweep; without one, this process, one after the other.
        maximize: whether more is better.
        first: settings that are tried first, such as those in use.
        seed: the same seed finds the same settings.
        storage: a file (SQLite) in which trials stay, so that the tuning can be resumed. It is of the files' content: where
            one has changed, the storage is of another tuning.
        progress: called with trials that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The tuning: ``best_settings``, ``best_value``, ``to_pandas()``, ``plot()``, and ``failed``: trials without a value,
        since the settings contradict each other, or since the objective is no finite number there.

    Raises:
        ValueError: the objective names what the answer does not have, or ``storage`` has another tuning.
        UnfragError: no trial has a value; the error says why.
    """
    if executor is not None and not hasattr(executor, "submit"):
        if not callable(executor):
            wrong("executor", executor, "a concurrent.futures.Executor, or a function that makes one,")
        guard.check("tune", None)
    if not isinstance(settings, Mapping) or not settings:
        wrong("settings", settings, 'a mapping such as {"vm.min_free_kbytes": (1024, 65536)}')
    if not callable(function):
        wrong("function", function, "a function such as unfrag.replay")
    if not isinstance(objective, str) and not callable(objective):
        wrong("objective", objective, "an expression, or a function of the answer,")
    runs = whole("runs", runs, least=1)
    optuna = library("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    expression = objective if isinstance(objective, str) else getattr(objective, "__name__", "objective")
    asked = {key(point): point for point in points(over)}
    if not asked:
        raise ValueError("over= has no point")
    for point in first:
        unknown = [name for name in point if name not in settings]
        if unknown:
            raise ValueError(f"first: {unknown[0]!r} is none of the settings that are asked about")
    path = None if storage is None else _storage(os.fspath(storage))
    study = optuna.create_study(
        storage=path,
        study_name="unfrag",
        load_if_exists=True,
        direction="maximize" if maximize else "minimize",
    )
    _check(study, _of(function, objective, expression, dict(fixed or {}), asked))
    # A trial that was under way when its process was killed is asked again.
    for left in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(left.number, state=optuna.trial.TrialState.FAIL)

    def done_so_far() -> int:
        """Trials that came to their end, with a value or with a reason why there is none."""
        ended = study.get_trials(deepcopy=False)
        return sum(t.state == optuna.trial.TrialState.COMPLETE or _WHY in t.user_attrs for t in ended)

    task = _Objective(function, objective)
    tell = teller(progress)
    with Workers(Here() if executor is None else executor) as workers:
        while (done := done_so_far()) < runs:
            if tell:
                tell(done, runs)
            study.sampler = optuna.samplers.TPESampler(seed=seed * 1_000_003 + done, multivariate=True)
            if done < len(first):
                study.enqueue_trial(dict(first[done]))
            trial = study.ask()
            chosen = {name: _suggest(trial, name, values) for name, values in settings.items()}
            try:
                rows = {row["key"]: row for row in workers.run(task, dict(fixed or {}) | {"settings": chosen}, asked)}
            except Mistake as e:
                raise ValueError(str(e)) from None
            reasons = [row["error"] or row["why"] for row in rows.values() if row["error"] or row["why"]]
            # Settings that contradict each other are no answer; neither is an objective without a value.
            was_refused = any(row["error"] for row in rows.values())
            value = None if reasons else _combined(combine, [rows[of]["value"] for of in asked], reasons)
            if value is None:
                trial.set_user_attr(_WHY, reasons[0])
                state = optuna.trial.TrialState.PRUNED if was_refused else optuna.trial.TrialState.FAIL
                study.tell(trial, state=state)
            else:
                study.tell(trial, value)
    if tell:
        tell(runs, runs)
    if not study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)):
        why = [t.user_attrs[_WHY] for t in study.get_trials(deepcopy=False) if _WHY in t.user_attrs]
        raise UnfragError(f"no settings could be tried: none of {len(why)} trials has a value; the last: {why[-1]}")
    return Tuning(study, expression)


def _storage(file: str) -> str:
    """What Optuna calls a file of SQLite.

    Raises:
        FileNotFoundError: its directory is not there.
        ValueError: it is another kind of file.
    """
    folder = os.path.dirname(os.path.abspath(file))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no such directory for storage=", folder)
    if os.path.exists(file):
        with open(file, "rb") as there:
            head = there.read(16)
        if head and head != b"SQLite format 3\0":
            raise ValueError(f"storage={file!r} is a file of another kind: choose another one")
    return f"sqlite:///{file}"


def _combined(combine: Callable[[Sequence[float]], float], values: Sequence[float], reasons: list[str]) -> float | None:
    """One value of those of the points; where there is none, the reason is added."""
    try:
        found = combine(values)
        if isinstance(found, bool) or not hasattr(found, "__float__"):
            wrong("combine", found, "a number of this function")
        value = float(found)
    except ArithmeticError as e:
        reasons.append(f"combine= has no value there: {type(e).__name__}: {e}")
        return None
    if not math.isfinite(value):
        reasons.append(f"combine= gives {value} there")
        return None
    return value


def _of(
    function: Callable[..., Any],
    objective: str | Callable[[Any], float],
    expression: str,
    fixed: Mapping[str, Any],
    asked: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    """What a tuning is of: what tells its storage from others."""
    is_own = getattr(function, "__module__", "").startswith("unfrag.")
    known: dict[str, str] = {}
    files = {of: contents({**fixed, **point}, is_own, known) for of, point in asked.items()}
    question = about(function, fixed)
    return {
        "question": question["function"],
        "code of the question": question["code"],
        "version": question["version"],
        "objective": expression,
        "code of the objective": "" if isinstance(objective, str) else content.of_function(objective),
        "fixed parameters": key(fixed),
        "points": key({"over": list(asked)}),
        "content of the files": key({"files": files}),
    }


def _check(study: optuna.Study, of: Mapping[str, str]) -> None:
    """Sees that a storage is of the same tuning."""
    for name, value in of.items():
        before = study.user_attrs.get(name)
        if before is None:
            study.set_user_attr(name, value)
        elif before != value:
            raise ValueError(f"storage= has another tuning ({name}: {before}, now {value}): choose another file")
