"""What the answers hold, a module for each question.

Each class has the keys of the answer's JSON as attributes; ``Class.schema()`` is the same as a JSON Schema. Names that Python
keeps for itself have an underscore behind them: ``change.from_``, ``what_if.class_``.
"""

from __future__ import annotations

from .account import Account
from .blame import Blame
from .doctor import Diagnosis
from .experiment import Experiment
from .explain import Explanation
from .forecast import Forecast
from .frames import Frames
from .inspect import Inspection
from .profile import Profile
from .replay import Replay
from .simulate import Simulation
from .slab import SlabReport
from .summary import Summary
from .wakes import Wakes

__all__ = [
    "Account",
    "Blame",
    "Diagnosis",
    "Experiment",
    "Explanation",
    "Forecast",
    "Frames",
    "Inspection",
    "Profile",
    "Replay",
    "Simulation",
    "SlabReport",
    "Summary",
    "Wakes",
]
