"""The contents page: configuration, rules in the order the data flows, and what `snakemake all` makes."""

import os
import shlex
import sys
from functools import cache
from pathlib import Path

from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

from ghost.study import builds as settings
from ghost.study.closed_loop import targets as study_targets
from ghost.project import place
from ghost.runs import warm
from ghost.errors import GhostError
from ghost.study.parts import check_grain, parts_of, uses_gpu
from ghost.files import canonical, sha256, tidy
from ghost.report.headlines import metric_names
from ghost.report.inventory import outputs
from ghost.report.tex import available
from ghost.runs.code import code_hash, imports
from ghost.runs.ending import mend_graceful_exit
from ghost.runs.scheduling import mend_looking

min_version("9.0")
mend_graceful_exit(JobScheduler)
mend_looking(JobScheduler)

# Rules call `python`: the one that runs Snakemake, also when its environment is not activated, or with `--sdm conda`
# that of environment.yml, which has all but our own package.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [f"{workflow.basedir}/src", os.environ.get("PYTHONPATH")]))

try:
    place.check(Path(workflow.basedir))
    scale = settings.load(config, Path(workflow.basedir))
    scale.check_places()
    GRAIN = check_grain(workflow.resource_settings.overwrite_scatter)
except GhostError as error:
    raise WorkflowError(str(error)) from None

CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
APPTAINER = DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method
if scale.backbone == "groot" and not CONDA:
    try:
        GROOT_PYTHON = settings.find_groot_python(scale)
    except GhostError as error:
        raise WorkflowError(str(error)) from None

TEX = available()
BUILT = {artefact.stage: artefact for artefact in scale.buildable(tex=TEX)}
OUTPUTS = outputs(scale, tex=TEX)
LABELS = {step: [a.label for a in BUILT.values() if a.step == step] for step in ("plot", "draw", "tabulate")}


report: "workflow/report/workflow.rst"


# With `--sdm apptainer` every job runs in this image: `apptainer build ghost.sif workflow/envs/ghost.def`.
container: "ghost.sif"


wildcard_constraints:
    experiment="[a-z0-9_]+",
    label="[a-z0-9_]+",
    part="[a-z0-9_-]+",
    stage="(fig|tab)_[a-z0-9_]+",


# Light: on a cluster these run where Snakemake runs, not as jobs in the queue.
localrules:
    summarize,
    plot,
    draw,
    tabulate,
    typeset_table,
    collect,
    macros,
    typeset,
    audit,
    notebook,
    inventory,
    bench,
    study,
    all,


# On one machine the jobs share a process that has imported what is slow to import.
# What killed jobs left goes first.
onstart:
    if workflow.is_main_process:
        scale.remember()
        for folder in {scale.data, scale.data / "cells", scale.figures, scale.generated, scale.pdf.parent}:
            tidy(folder)
    if workflow.local_exec and workflow.is_main_process and not CONDA and not APPTAINER:
        warm.start()


include: "workflow/rules/runs.smk"
include: "workflow/rules/artefacts.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/bench.smk"


rule all:
    default_target: True
    input:
        OUTPUTS,
        scale.inventory,


# The closed-loop study: `all` reads what was shipped of it, and `make study` runs its builds.
rule study:
    input:
        study_targets(scale.data, scale.scale, tuple(row.name for row in scale.experiments)),
