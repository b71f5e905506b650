"""Ask unfrag's laboratory from Python.

Each function answers with an :class:`Answer`: its keys are attributes, ``to_dict()`` has the shape of the command's
``--json``, ``repr()`` shows what the command prints, and a notebook shows a picture where there is one.

>>> import unfrag
>>> answer = unfrag.replay("samples/gcc-768M.unfrag", kernels=["6.1", "6.18"])
>>> [k.kernel for k in answer.kernels]
['6.1', '6.18']

:func:`sweep` asks one question at many points, on all CPUs or on a cluster; :func:`tune` finds settings for an objective.

Long work runs without the interpreter lock, takes ``progress=function(done, total)``, and stops on Ctrl-C. What cannot be
answered raises :class:`UnfragError`, which says what is wrong, where, and the way out.
"""

from ._unfrag import Recording, UnfragError, __version__
from .answers import Answer
from .inputs import Input
from .questions import doctor, experiment, explain, inspect, replay, simulate
from .sweeping import Sweep, sweep
from .tuning import Tuning, tune

__all__ = [
    "Answer",
    "Input",
    "Recording",
    "Sweep",
    "Tuning",
    "UnfragError",
    "__version__",
    "doctor",
    "experiment",
    "explain",
    "inspect",
    "replay",
    "simulate",
    "sweep",
    "tune",
]
