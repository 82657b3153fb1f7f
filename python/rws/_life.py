"""How trainers, posteriors and the processes of one run begin and end."""

from __future__ import annotations

import atexit
import os
import sys
import time
import weakref
from typing import Any

from . import _rws

#: Everything that has threads of the library.
live: weakref.WeakSet[Any] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads of the library end before the interpreter does."""
    for o in list(live):
        try:
            o.close()
        except Exception:
            pass
    if _rws.n_ranks() > 1:
        _leave()


def _leave() -> None:
    """Ends the ranks in order. A rank that ends by an exception must not wait for the others, which may be in the middle of an
    iteration: it leaves at once, and they are told that it is gone."""
    if _rws._rank_lost() < 0 and getattr(sys, "last_value", None) is None:
        _rws._ranks_close()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(0.5)  # launchers drop what was printed when they see ranks end
    os._exit(1)


def join() -> None:
    """Joins the processes that mpirun or srun has started, so that they train one run together."""
    if os.environ.get("RWS_PYTHON_ALONE", "0") in ("", "0"):
        _rws._ranks_open()
