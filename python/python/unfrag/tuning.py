"""Tuning: the settings for which an objective is best, with Optuna.

Each trial asks Optuna for settings, asks the question with them (at one point or several, such as the recordings of a fleet),
and tells Optuna the objective. The seed of a trial follows from the seed of the tuning and the trial's number, so a tuning that
is resumed from its storage goes the same way as one that was never interrupted.
"""

from __future__ import annotations

import ast
import operator
import os
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from ._unfrag import UnfragError
from .executors import Here
from .pictures import axes
from .progress import Progress, teller
from .sweeping import Workers, key, named, points

#: The values of a setting: a range of whole numbers or of real ones, or a list of choices.
Values = tuple[int, int] | tuple[float, float] | Sequence[Any]

#: Ranges that reach over so many times their least value are searched by orders of magnitude.
_WIDE = 100

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}


def metric(expression: str, data: Mapping[str, Any]) -> float:
    """The value of an expression over what an answer has, such as ``counters.allocstall + counters.pgmigrate_success / 1e3``.

    It has numbers, ``+ - * / **``, ``min``, ``max``, ``abs``, and dotted names; ``kernels[0].totals.allocstall`` reaches into
    lists.

    Raises:
        ValueError: a name or its value is unknown, or the expression has something else.
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

    result = value(ast.parse(expression, mode="eval").body)
    if isinstance(result, bool) or not isinstance(result, (int, float)):
        raise ValueError(f"objective: {expression} is no number, but {result!r:.80}")
    return float(result)


class Tuning:
    """What a tuning found."""

    def __init__(self, study: Any, expression: str) -> None:
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

    def to_pandas(self) -> Any:
        """A row for each trial: ``number``, ``value``, ``state``, and the settings."""
        frame = self.study.trials_dataframe(attrs=("number", "value", "state", "params"))
        return frame.rename(columns=lambda c: c.removeprefix("params_"))

    def plot(self, ax: Any = None) -> Any:
        """Draws the objective by trial, and the best so far; returns the axes."""
        ax = axes(ax)
        frame = self.to_pandas().dropna(subset=["value"])
        ax.plot(frame["number"], frame["value"], "o", label="trial")
        best = frame["value"].cummin() if self.study.direction.name == "MINIMIZE" else frame["value"].cummax()
        ax.plot(frame["number"], best, label="best so far")
        ax.set_xlabel("trial")
        ax.set_ylabel(self._expression)
        ax.legend()
        return ax

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in self.best_settings.items())
        return f"<unfrag.Tuning: {self._expression} = {self.best_value:g} at {settings}, {len(self.study.trials)} trials>"


class Mistake(Exception):
    """What no settings can mend: the question is wrong, or the objective has no value."""


class _Objective:
    """The value of the objective at a point. It is computed where the question is answered, so that no answer travels."""

    def __init__(self, function: Callable[..., Any], objective: str | Callable[[Any], float]) -> None:
        self._function, self._objective = function, objective

    def __call__(self, **point: Any) -> dict[str, float]:
        try:
            answer = self._function(**point)
            if not isinstance(self._objective, str):
                return {"value": float(self._objective(answer))}
            return {"value": metric(self._objective, answer.to_dict() if hasattr(answer, "to_dict") else answer)}
        except UnfragError:
            raise
        except ValueError as e:
            raise Mistake(str(e)) from e


def _suggest(trial: Any, name: str, values: Values) -> Any:
    if not isinstance(values, tuple):
        return trial.suggest_categorical(name, list(values))
    low, high = values
    log = low > 0 and high >= low * _WIDE
    if isinstance(low, int) and isinstance(high, int):
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, low, high, log=log)


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
        storage: a file (SQLite) in which trials stay, so that the tuning can be resumed.
        progress: called with trials that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The tuning: ``best_settings``, ``best_value``, ``to_pandas()``, ``plot()``.

    Raises:
        ValueError: the objective names what the answer does not have.
        UnfragError: no trial could be answered.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    expression = objective if isinstance(objective, str) else getattr(objective, "__name__", "objective")
    asked = {key(point): point for point in points(over)}
    if not asked:
        raise ValueError("over= has no point")
    path = None if storage is None else f"sqlite:///{os.fspath(storage)}"
    study = optuna.create_study(
        storage=path,
        study_name="unfrag",
        load_if_exists=True,
        direction="maximize" if maximize else "minimize",
    )
    about = {"question": named(function), "objective": expression, "fixed parameters": key(fixed or {})}
    _check(study, about | {"points": key({"over": list(asked)})})
    # A trial that was under way when its process was killed is asked again.
    for left in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(left.number, state=optuna.trial.TrialState.FAIL)
    counted = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    task = _Objective(function, objective)
    tell = teller(progress)
    why: str | None = None
    with Workers(Here() if executor is None else executor) as workers:
        while (done := len(study.get_trials(deepcopy=False, states=counted))) < runs:
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
            refused = [row["error"] for row in rows.values() if row["error"]]
            if refused:
                # These settings contradict each other: they are no answer, and no end.
                why = refused[0]
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, combine([rows[of]["value"] for of in asked]))
    if tell:
        tell(runs, runs)
    if not study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)):
        raise UnfragError(f"no settings could be tried: {why}")
    return Tuning(study, expression)


def _check(study: Any, about: Mapping[str, str]) -> None:
    """Sees that a storage is of the same tuning."""
    for name, value in about.items():
        before = study.user_attrs.get(name)
        if before is None:
            study.set_user_attr(name, value)
        elif before != value:
            raise ValueError(f"storage= has another tuning ({name}: {before}, now {value}): choose another file")
