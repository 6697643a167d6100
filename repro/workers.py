"""One process for each piece of work, a bounded number at a time.

A process of its own gives every cell its own peak memory, and a crash or an out-of-memory kill takes one cell with it.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil

_WATCH_SECONDS = 0.5
_TAIL_BYTES = 2000
_WATCHER = "watch-parent"
_STARTS = 3
SERVER_LOST = 255
"""Exit code that stands for an unknown one: the server that starts the processes was killed."""


class WorkersError(RuntimeError):
    """No worker process can be started."""


def run_each(
    target: Callable[..., None],
    arguments: Sequence[tuple[Any, ...]],
    *,
    processes: int,
    logs: Sequence[Path],
    preload: Sequence[str] = (),
) -> Generator[tuple[int, int], None, None]:
    """Call ``target(*arguments[i])`` for every i, each in a fresh process, in order, `processes` at a time.

    Parameters
    ----------
    target : callable
        A function that can be imported by its name.
    arguments : sequence of tuple
        Must be picklable.
    processes : int
        Largest number of processes at a time.
    logs : sequence of Path
        Where each call's output goes.
    preload : sequence of str
        Modules imported once, before the first call.

    Yields
    ------
    index, exit_code : int
        As the calls end. A negative exit code is the signal that killed the process.

    Raises
    ------
    WorkersError
        If a process cannot be started.

    Notes
    -----
    When the generator is closed, or the calling process dies in whatever way, the processes are killed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    waiting = deque(range(len(arguments)))
    running: dict[int, tuple[int, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                index = waiting.popleft()
                process = _start(context, (logs[index], target, arguments[index]))
                running[process.sentinel] = (index, process)
            for sentinel in wait(list(running)):
                assert isinstance(sentinel, int)
                index, process = running[sentinel]
                process.join()
                if process.exitcode == SERVER_LOST:  # then it may still be at work, and write its record
                    _wait_until_gone(process.pid)
                del running[sentinel]
                yield index, process.exitcode
                process.close()
    finally:
        for _, process in running.values():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `Process.kill` spares one whose server was lost
            process.join()


def _start(context: Any, arguments: tuple[Any, ...]) -> Any:
    """Start a process; a server that is killed is started anew by the next try."""
    for _ in range(_STARTS):
        process = context.Process(target=_supervised, args=arguments)
        try:
            process.start()
        except (EOFError, OSError) as error:
            cause = error
            time.sleep(_WATCH_SECONDS)  # a server just killed still counts as running
        else:
            return process
    raise WorkersError(
        f"no worker process can be started ({type(cause).__name__}: {cause}): the server that starts them is killed "
        f"each time (out of memory?). What is recorded stays; the same command goes on from there."
    ) from cause


def _supervised(log: Path, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    die_with_parent()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        faulthandler.enable(file)
        target(*arguments)


def die_with_parent() -> None:
    """In a child process: be killed soon after the process that started it is gone. Elsewhere: do nothing."""
    parent = multiprocessing.parent_process()
    watched = any(thread.name == _WATCHER for thread in threading.enumerate())
    if parent is None or parent.pid is None or watched:
        return
    threading.Thread(target=_watch, args=(parent.pid,), name=_WATCHER, daemon=True).start()


def _watch(parent: int) -> None:
    _wait_until_gone(parent)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait_until_gone(number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(number)
        # `is_running` is true for a dead process whose own parent has not asked for its status yet.
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(_WATCH_SECONDS)


def describe_death(exit_code: int, log: Path) -> str:
    """Say how a process ended that left no word of its own, with the end of its output."""
    if exit_code < 0:
        name = signal.Signals(-exit_code).name
        cause = f"the process was killed by {name}"
        if exit_code == -signal.SIGKILL:
            cause += " (out of memory?)"
    else:
        cause = f"the process ended with status {exit_code}"
    tail = ""
    if log.exists():
        tail = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace").strip()
    return f"{cause}; the end of its output: {tail}" if tail else f"{cause} without any output"
