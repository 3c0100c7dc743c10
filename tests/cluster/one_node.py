"""A real Slurm of one node on loopback, from Debian's packages, with two GPUs that are none. For tests, as root.

The configuration has to be in /etc/slurm: the plugin's job step drops SLURM_CONF. One that is not ours is left alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

OURS = "# Written by ghost's tests: one node on loopback."
ETC = Path("/etc/slurm")
PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
SLURM_CONF = """\
{ours}
ClusterName=ghost
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation={state}/controller
SlurmdSpoolDir={state}/node
SlurmctldPidFile={state}/slurmctld.pid
SlurmdPidFile={state}/slurmd.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# More cores and memory than there are, so that jobs do not wait for each other.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=2
MinJobAge=7200
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=100000 Gres=gpu:2 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=gpu Nodes={host} MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes={host} MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
"""
# A GPU needs a device file; these exist everywhere.
GRES_CONF = f"{OURS}\nAutoDetect=off\nName=gpu File=/dev/null\nName=gpu File=/dev/zero\n"


def obstacle() -> str:
    """Why there can be no cluster here; empty if there can."""
    if os.geteuid() != 0:
        return "a one-node Slurm needs root"
    if (ETC / "slurm.conf").exists() and not (ETC / "slurm.conf").read_text().startswith(OURS):
        return "this machine has a Slurm of its own"
    if all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "sbatch")):
        return ""
    if shutil.which("apt-get") is None:
        return "Slurm is missing, and there is no apt-get to install it from Debian's packages"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *PACKAGES]):
        done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"apt-get {command[0]} failed: {done.stderr.strip().splitlines()[-1:]}"
    return ""


class OneNode:
    """Starts the daemons and stops just those."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        host = socket.gethostname().split(".")[0]
        for folder in (state / "controller", state / "node", ETC):
            folder.mkdir(parents=True, exist_ok=True)
        (ETC / "slurm.conf").write_text(SLURM_CONF.format(ours=OURS, host=host, state=state))
        (ETC / "gres.conf").write_text(GRES_CONF)
        self._start_munge()
        self.start_controller()
        self.start_node()

    def _start_munge(self) -> None:
        if subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0:
            return  # it runs already, and stays
        if not Path("/etc/munge/munge.key").exists():
            subprocess.run(["mungekey", "--create"], check=True)
            shutil.chown("/etc/munge/munge.key", "munge", "munge")
        Path("/run/munge").mkdir(exist_ok=True)
        shutil.chown("/run/munge", "munge", "munge")
        self._start("munged", "runuser", "-u", "munge", "--", "munged", "--foreground")
        wait_for(lambda: subprocess.run(["munge", "-n"], capture_output=True, check=False).returncode == 0)

    def _start(self, name: str, *command: str) -> None:
        with (self.state / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)

    def start_controller(self) -> None:
        self._start("slurmctld", "slurmctld", "-D")
        wait_for(lambda: ask("scontrol", "show", "partition", check=False) != "")

    def start_node(self) -> None:
        self._start("slurmd", "slurmd", "-D")
        wait_for(lambda: {"idle", "mix", "alloc"} & set(ask("sinfo", "-h", "-o", "%t").split()))

    def kill(self, name: str) -> None:
        """SIGKILL to one of the daemons."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def kill_node(self) -> None:
        """The node is gone, with the jobs on it: slurmd, its steps and all that they started."""
        self.kill("slurmd")
        for process in processes_of_steps(self.state / "slurmd.log"):
            os.kill(process, signal.SIGKILL)

    def stop(self) -> None:
        ask("scancel", "--user", "root", check=False)
        wait_for(lambda: ask("squeue", "-h", check=False) == "")
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.daemons:
                os.killpg(self.daemons[name].pid, signal.SIGTERM)
                self.daemons.pop(name).wait()
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink()


def processes_of_steps(log: Path) -> list[int]:
    """Process ids of the job steps of one slurmd, known by its log that they hold open, and of all below them."""
    parents: dict[int, int] = {}
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        process = int(stat.parent.name)
        try:
            name, rest = stat.read_text().rsplit(")", 1)
            parents[process] = int(rest.split()[1])
            if name.endswith("(slurmstepd") and log in [fd.readlink() for fd in (stat.parent / "fd").iterdir()]:
                found.add(process)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def ask(*command: str, check: bool = True) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=check).stdout.strip()


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.2)
