#!/usr/bin/env bash
# A fault per experiment, the first time it runs: the test puts this line before the step in its copy of the rules. The
# jobs of an experiment are listed in <seen>/<experiment>.jobs.
set -eu
experiment=$1 seen=$2
job=${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID} # the id alone may be the array's
mkdir -p "$seen"
echo "$SLURM_JOB_ID" >> "$seen/$experiment.jobs"
if [ -e "$seen/$experiment" ]; then exit 0; fi
touch "$seen/$experiment"
case $experiment in
  dwell_time) exit 3 ;;
  diagnostic) scancel "$job"; sleep 600 ;;
  ghost_mechanism) scontrol update "JobId=$job" TimeLimit=1; sleep 600 ;;
  switch_speed) python -c "import time; held = b'1' * 3_000_000_000; time.sleep(600)" ;;
  learned_potential) sleep 600 ;; # the test takes the node away
esac
