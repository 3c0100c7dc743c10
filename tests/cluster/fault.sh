#!/usr/bin/env bash
# A fault per experiment, the first time it runs: the test puts this line before the step in its copy of the rules.
set -eu
experiment=$1 seen=$2
mkdir -p "$seen"
if [ -e "$seen/$experiment" ]; then exit 0; fi
touch "$seen/$experiment"
case $experiment in
  dwell_time) exit 3 ;;
  diagnostic) scancel "$SLURM_JOB_ID"; sleep 600 ;;
  ghost_mechanism) scontrol update "JobId=$SLURM_JOB_ID" TimeLimit=1; sleep 600 ;;
  switch_speed) python -c "import time; held = b'1' * 3_000_000_000; time.sleep(600)" ;;
  learned_potential) sleep 600 ;; # the test takes the node away
esac
