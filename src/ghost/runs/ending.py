"""How a process ended: the signal behind an exit code, and what this signal usually means; and how Snakemake ends."""

import signal
import threading
from typing import Any

MEANING = {
    "SIGKILL": "the kernel or the cluster ended it, most often because memory ran out",
    "SIGTERM": "somebody asked it to end: a user, a time limit of the cluster, a preemption",
    "SIGINT": "somebody pressed Ctrl-C",
    "SIGHUP": "its terminal or connection was closed",
    "SIGSEGV": "compiled code read memory that is not its own: a fault of a library or of the hardware",
    "SIGBUS": "a file that it had mapped became shorter, or memory or disk behind it ran out",
    "SIGABRT": "compiled code gave up; what it said last may be in the log",
    "SIGFPE": "compiled code divided by zero",
    "SIGILL": "a library was built for another processor",
    "SIGXCPU": "it used more CPU time than its limit",
    "SIGXFSZ": "it wrote a file larger than its limit",
}


def signal_of(code: int) -> str:
    """The name of the signal in an exit code: -9 of a process, or 137 as a shell says it; "" when there is none."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number).name if number in set(signal.Signals) else ""


def why(code: int) -> str:
    """A sentence about the signal that ended a step; "" when it ended by itself."""
    name = signal_of(code)
    return f"{name} ended this step: {MEANING.get(name, 'an unusual signal')}" if name else ""


def mend_graceful_exit(scheduler: Any) -> None:
    """Let Snakemake end when it is asked to (SIGTERM).

    Its handler takes a lock. The main thread, which the signal interrupts, may hold this lock: it does while it chooses
    the next jobs. Then the handler would wait for the thread that waits for the handler. Another thread can wait.
    """
    take = scheduler.exit_gracefully

    def exit_gracefully(self: Any, *signal_and_frame: Any) -> None:
        threading.Thread(target=take, args=(self, *signal_and_frame), daemon=True).start()

    scheduler.exit_gracefully = exit_gracefully
