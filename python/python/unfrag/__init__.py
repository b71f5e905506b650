"""Ask unfrag's laboratory from Python.

Each question is a function that answers with an object of its own class: its keys are attributes, ``to_dict()`` has the shape
of the command's ``--json``, ``print`` shows what the command prints, and a notebook shows a picture where there is one.

>>> import unfrag
>>> answer = unfrag.replay("samples/gcc-768M.unfrag", kernels=["6.1", "6.18"])
>>> [k.kernel for k in answer.kernels]
['6.1', '6.18']

:func:`sweep` asks one question at many points, on all CPUs or on a cluster; :func:`tune` finds settings for an objective.

Long work runs without the interpreter lock, takes ``progress=function(done, total)``, and stops on Ctrl-C. What cannot be
answered raises :class:`UnfragError`, which says what is wrong, where, and the way out.
"""

from ._unfrag import UnfragError, __version__
from .answers import Answer
from .dataset import Sweep
from .inputs import Input
from .parts import Named, Part
from .questions import (
    account,
    blame,
    doctor,
    experiment,
    explain,
    forecast,
    frames,
    inspect,
    profile,
    replay,
    simulate,
    slab,
    summary,
    wakes,
)
from .recordings import Recording, Table, import_, record
from .results import (
    Account,
    Blame,
    Diagnosis,
    Experiment,
    Explanation,
    Forecast,
    Frames,
    Inspection,
    Profile,
    Replay,
    Simulation,
    SlabReport,
    Summary,
    Wakes,
)
from .sweeping import sweep
from .tuning import Tuning, tune

__all__ = [
    "Account",
    "Answer",
    "Blame",
    "Diagnosis",
    "Experiment",
    "Explanation",
    "Forecast",
    "Frames",
    "Input",
    "Inspection",
    "Named",
    "Part",
    "Profile",
    "Recording",
    "Replay",
    "Simulation",
    "SlabReport",
    "Summary",
    "Sweep",
    "Table",
    "Tuning",
    "UnfragError",
    "Wakes",
    "__version__",
    "account",
    "blame",
    "doctor",
    "experiment",
    "explain",
    "forecast",
    "frames",
    "import_",
    "inspect",
    "profile",
    "record",
    "replay",
    "simulate",
    "slab",
    "summary",
    "sweep",
    "tune",
    "wakes",
]
