"""What a person sees of training, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, Optional, Union

from . import _rws


class CtrlC:
    """Ctrl-C asks for an end after the iteration; a second one raises KeyboardInterrupt in the program."""

    def __init__(self, trainer: Any) -> None:
        self.trainer, self.caught = trainer, False
        self.before: Any = None

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is threading.main_thread() and \
                signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.before = signal.signal(signal.SIGINT, self._on)
        return self

    def _on(self, number: int, frame: Any) -> None:
        if self.caught:
            signal.default_int_handler(number, frame)
        self.caught = True
        self.trainer.stop()

    def __exit__(self, *unused: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)


def _in_notebook() -> bool:
    import builtins
    shell = getattr(builtins, "get_ipython", None)  # which IPython puts there
    return shell is not None and type(shell()).__name__ == "ZMQInteractiveShell"


def bar(wanted: Optional[bool], trainer: Any) -> Union[TerminalBar, NotebookBar, None]:
    if wanted is False or _rws.rank() > 0:
        return None
    if _in_notebook():
        return NotebookBar(trainer)
    if wanted or sys.stderr.isatty():
        return TerminalBar(trainer)
    return None


class Bar:
    def __init__(self, trainer: Any) -> None:
        self.n, self.first = trainer.config["iterations"], trainer.iteration
        self.start, self.text, self.shown = time.monotonic(), "", 0.0
        self.ended = False

    def progress(self, iteration: int, seconds: float, now: bool = False) -> None:
        raise NotImplementedError

    def line(self, iteration: int) -> str:
        spent = time.monotonic() - self.start
        speed = (iteration - self.first) / spent if spent > 0 else 0
        left = (self.n - iteration) / speed if speed > 0 else 0
        when = f"{_duration(spent)} taken" if self.ended or iteration >= self.n else f"{_duration(left)} left"
        return f"{iteration}/{self.n}  {speed:.0f} it/s  {when}  {self.text}"

    def evaluated(self, m: Any) -> None:
        self.text = "  ".join(f"{k} {v:.4g}" for k, v in m.items() if v == v)
        self.progress(m.iteration, m.seconds, True)


def _duration(seconds: float) -> str:
    s = int(seconds)
    return f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}" if s >= 3600 else f"{s // 60}:{s % 60:02d}"


class TerminalBar(Bar):
    def progress(self, iteration: int, seconds: float, now: bool = False) -> None:
        t = time.monotonic()
        if not now and t - self.shown < 0.2:
            return
        self.shown = t
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
        except OSError:
            width = 100
        full = int(20 * iteration / max(1, self.n))
        text = f"[{'#' * full}{'.' * (20 - full)}] {self.line(iteration)}"
        sys.stderr.write("\r" + text[:width - 1].ljust(width - 1))
        sys.stderr.flush()

    def close(self, iteration: int) -> None:
        self.ended = True
        self.progress(iteration, 0.0, True)
        sys.stderr.write("\n")
        sys.stderr.flush()


class Counter:
    """Done and left of a number of pieces of work, on one line of the terminal."""

    def __init__(self, what: str) -> None:
        self.what, self.start, self.shown = what, time.monotonic(), 0.0

    def __call__(self, done: int, n: int) -> None:
        now = time.monotonic()
        if now - self.shown < 0.2 and done < n:
            return
        self.shown = now
        left = (now - self.start) * (n - done) / max(1, done)
        sys.stderr.write(f"\r{self.what}  {done}/{n}  {_duration(left)} left\033[K")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def counter(wanted: Optional[bool], what: str) -> Optional[Counter]:
    """A line that counts, on a terminal by default."""
    return Counter(what) if wanted or (wanted is None and sys.stderr.isatty()) else None


class NotebookBar(Bar):
    def __init__(self, trainer: Any) -> None:
        super().__init__(trainer)
        from IPython.display import display
        show: Any = display
        self.handle = show(self._html(trainer.iteration), display_id=True)

    def _html(self, iteration: int) -> Any:
        from html import escape

        from IPython.display import HTML
        html: Any = HTML
        return html(f'<progress value="{iteration}" max="{max(1, self.n)}" style="width:20em"></progress> '
                    f"<code>{escape(self.line(iteration))}</code>")

    def progress(self, iteration: int, seconds: float, now: bool = False) -> None:
        t = time.monotonic()
        if not now and t - self.shown < 0.5:
            return
        self.shown = t
        self.handle.update(self._html(iteration))

    def close(self, iteration: int) -> None:
        self.ended = True
        self.progress(iteration, 0.0, True)
