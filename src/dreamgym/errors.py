"""The error tree, and `boundary`, which says who is to blame for what escapes.

    DreamGymError
    |- ConfigError (ValueError)         a setting is wrong; nothing was started
    |  '- JobNotTaught                  an experience model never learnt what it is asked for
    |- MissingDependency (ImportError)  an optional part is not installed; the message names the fix
    |- EnvError (RuntimeError)          an environment broke; the episode fails, the run goes on
    |  |- EnvTimeout (TimeoutError)     it did not answer in time
    |  '- EnvCrash                      its process died
    |- LLMError (RuntimeError)          a language model gave no usable answer
    |  |- LLMTimeout (TimeoutError)     not in time, after its retries
    |  |- LLMRateLimit                  the server kept saying "later"
    |  |- LLMRefused                    the server will not take this request: retrying cannot help
    |  |- LLMBudget                     the spending ceiling would be passed; nothing was sent
    |  |- LLMDown                       the back end stayed away for longer than a run may wait
    |  '- ReplyFormatError (ValueError) an answer came but could not be read
    |- AgentError (RuntimeError)        an agent broke; the episode fails, the run goes on
    |- RecordError (ValueError)         a stored or imported record cannot be read
    |- ReplayError (RuntimeError)       the experience store refuses
    '- RunDirError (OSError)            a run directory is in the way, or is not one
       '- OtherSettings                 the run there was made with other settings

`EnvError` and `AgentError` are captured once, in `rollout.episode.run_episode`, and become data.
All others stop the program with their message: what happened, with the values, and what to do.
"""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


class DreamGymError(Exception):
    """Anything that DreamGym itself reports."""


class ConfigError(DreamGymError, ValueError):
    """A setting is wrong."""


class JobNotTaught(ConfigError):
    """An experience model is asked for a job that it was never taught."""


class MissingDependency(DreamGymError, ImportError):
    """An optional part is not installed."""


class EnvError(DreamGymError, RuntimeError):
    """An environment broke."""


class EnvTimeout(EnvError, TimeoutError):
    """An environment did not answer in time."""


class EnvCrash(EnvError):
    """An environment's process died."""


class LLMError(DreamGymError, RuntimeError):
    """A language model gave no usable answer."""


class LLMTimeout(LLMError, TimeoutError):
    """No answer in time."""


class LLMRateLimit(LLMError):
    """The server kept refusing for load."""


class LLMRefused(LLMError):
    """The server will not take this request."""


class LLMBudget(LLMError):
    """The spending ceiling would be passed."""


class LLMDown(LLMError):
    """The back end stayed away: no later call will fare better, so the run stops."""


class ReplyFormatError(LLMError, ValueError):
    """An answer could not be read."""

    def __init__(self, message: str = "", *, raw: str = "") -> None:
        super().__init__(message)
        self.raw = raw
        """The answer itself, or as much of it as is worth keeping."""


class AgentError(DreamGymError, RuntimeError):
    """An agent broke."""


class RecordError(DreamGymError, ValueError):
    """A record cannot be read."""


class ReplayError(DreamGymError, RuntimeError):
    """The experience store refuses."""


class RunDirError(DreamGymError, OSError):
    """A run directory is in the way, or is not one."""


class OtherSettings(RunDirError):
    """The run in a directory was made with other settings than those that are to go on."""


@contextmanager
def boundary(kind: type[DreamGymError], where: str) -> Iterator[None]:
    """Turn whatever an extension raises inside into `kind`, naming where it happened.

    Authors of environments and agents raise plain exceptions; DreamGym's own errors pass unchanged.
    """
    try:
        yield
    except DreamGymError:
        raise
    except Exception as error:
        told = f"{where}: {type(error).__name__}: {error}"
        raise kind(f"{told} ({_raised_at(error)})") from error


def _raised_at(error: BaseException) -> str:
    """Return the file and line that raised it: the innermost that is neither installed nor ours."""
    frames = traceback.extract_tb(error.__traceback__)
    others = [frame for frame in frames if not frame.filename.startswith(_libraries())]
    last = (others or frames)[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"


@cache
def _libraries() -> tuple[str, ...]:
    """Return how the files of libraries, and of this package, begin."""
    import sysconfig  # slow to load, and nobody needs it until something breaks

    homes = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return (*(home + os.sep for home in [*homes, str(Path(__file__).parent)]), "<frozen")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean ...? Known: ...` for a name that is not among the known ones."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"{hint} Known: {', '.join(names)}." if names else hint
