"""The curriculum: a pool of real and made-up tasks, their value, and new ones where it is high."""

from dreamgym.tasks.clusters import TaskClusters
from dreamgym.tasks.curriculum import Curriculum, Mix
from dreamgym.tasks.customs import learn_customs
from dreamgym.tasks.gate import TaskGate
from dreamgym.tasks.makers import ModelMaker, RecordedStarts, TaskMaker
from dreamgym.tasks.pool import Entry, Rules, TaskPool, TaskState
from dreamgym.tasks.refill import Refill, RefillPlan
from dreamgym.tasks.value import Worth, group_value

__all__ = [
    "Curriculum",
    "Entry",
    "Mix",
    "ModelMaker",
    "RecordedStarts",
    "Refill",
    "RefillPlan",
    "Rules",
    "TaskClusters",
    "TaskGate",
    "TaskMaker",
    "TaskPool",
    "TaskState",
    "Worth",
    "group_value",
    "learn_customs",
]
