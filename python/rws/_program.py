"""The program `rws`, which comes with the package: python -m rws."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NoReturn, Optional

__all__ = ["program", "main"]


def program() -> str:
    """The path of the program."""
    given = os.environ.get("RWS_PROGRAM")
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "rws")
    for path in (given, here, shutil.which("rws")):
        if path and os.path.exists(path):
            return path
    raise FileNotFoundError("The program rws is not installed beside the package; RWS_PROGRAM may name it.")


def _environment() -> dict[str, str]:
    """The environment of the program: a wheel has fonts with it, which serve where the system has none."""
    fonts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fonts", "fonts.conf")
    return {**({"FONTCONFIG_FILE": fonts} if os.path.exists(fonts) else {}), **os.environ}


def call(*arguments: str, input: Optional[bytes] = None) -> bytes:
    """Runs the program; its complaint becomes an exception."""
    from ._rws import Error
    # what it is called for works alone, also where this process is a rank
    alone = {k: v for k, v in _environment().items() if not k.startswith(("OMPI_", "PMI", "MPI_")) and k != "SLURM_STEP_NUM_TASKS"}
    done = subprocess.run([program(), *arguments], input=input, capture_output=True, env=alone)
    if done.returncode:
        raise Error(done.stderr.decode(errors="replace").strip() or f"rws {arguments[0]} failed.")
    return done.stdout


def main() -> NoReturn:
    """Becomes the program, with the arguments of the process."""
    path = program()
    os.execve(path, ["rws", *sys.argv[1:]], _environment())
