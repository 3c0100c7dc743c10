"""How a process ended: the signal behind an exit code, and what this signal usually means."""

import signal

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
