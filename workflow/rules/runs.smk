# Runs: an experiment -> one run per seed, listed in its manifest. One rule per step, all of one shape: each step receives
# its experiment as JSON and the manifests of the experiments that it needs. Where the profile divides the work
# (`set-scatter`: so many seeds, episodes, attempts or shards a job), `<step>_part` does a part of it, and <step> finds
# what the parts have done. A part's file stays, so that a further seed is one further part.

# An experiment of GR00T's runs in an environment of its own: conda's with `--sdm conda`, else that of its interpreter.


def python(experiment):
    variables = [f"{name}={shlex.quote(value)}" for name, value in scale.environment(experiment).items()]
    started = f"{GROOT_PYTHON} -m" if scale.in_groot(experiment) and not CONDA else "python -m ghost.runs.warm"
    return " ".join([*variables, started])


def threads(experiment):
    """All cores of this machine, where nothing may run beside it."""
    alone = scale.experiment(experiment).timed and workflow.local_exec
    return (workflow.resource_settings.cores if alone else None) or scale.threads(experiment)


def conda_of(step):
    groot = any(scale.in_groot(row.name) for row in scale.experiments if row.step == step)
    return "../envs/groot.yml" if groot else "../../environment.yml"


PARTS = {row.name: {part.name: part for part in parts_of(scale, row.name, GRAIN)} for row in scale.experiments}


def part_files(wildcards):
    """What the parts of an experiment leave; nothing where one job does the whole."""
    names = PARTS[wildcards.experiment]
    return [scale.part(wildcards.experiment, name) for name in names] if len(names) > 1 else []


def part_of(wildcards):
    return PARTS[wildcards.experiment][wildcards.part] if "part" in wildcards.keys() else None


@cache
def declared(experiment, seeds=None):
    """The experiment as JSON; that of a part has the seeds of the part alone."""
    declaration = scale.declaration(experiment)
    return canonical({**declaration, "seeds": list(seeds)} if seeds else declaration)


@cache
def rests_on(experiment):
    """What a change of reruns it: its code, the locks of its environment, folders from outside, the files that it reads."""
    row = scale.experiment(experiment)
    locks = [sha256(Path(workflow.basedir) / lock) for lock in scale.locks(experiment)]
    return [code_hash(*row.modules, science=True), *locks, canonical(scale.outside(experiment)), *row.reads]


def gpus(wildcards):
    """A job that only gathers computes nothing. GR00T's identity depends on the device, so its gathering needs one too."""
    experiment = wildcards.experiment
    gathers = "part" not in wildcards.keys() and len(PARTS[experiment]) > 1 and not scale.in_groot(experiment)
    return int(uses_gpu(scale, experiment) and not gathers)


def rules_of_runs():
    """name of the rule, its step, what it makes, its log, its experiments."""
    for step in sorted({row.step for row in scale.experiments}):
        rows = [row for row in scale.experiments if row.step == step]
        yield step, step, scale.manifest("{experiment}"), "{experiment}.log", rows
        if parted := [row for row in rows if len(PARTS[row.name]) > 1]:
            yield f"{step}_part", step, scale.part("{experiment}", "{part}"), "{experiment}.{part}.log", parted


for rule_name, step, made, log_name, rows in rules_of_runs():

    rule:
        name:
            rule_name
        input:
            needs=lambda wildcards: [scale.manifest(need) for need in scale.experiment(wildcards.experiment).needs],
            parts=lambda wildcards: [] if part_of(wildcards) else part_files(wildcards),
            reads=lambda wildcards: list(scale.experiment(wildcards.experiment).reads),
        output:
            made=made,
        log:
            f"logs/{scale.scale}/{rule_name}/{log_name}",
        wildcard_constraints:
            experiment="|".join(row.name for row in rows),
        conda:
            conda_of(step)
        threads: lambda wildcards: threads(wildcards.experiment)
        resources:
            gpu=gpus,
        params:
            step=step,
            python=lambda wildcards: python(wildcards.experiment),
            experiment=lambda wildcards: declared(
                wildcards.experiment, part.seeds if (part := part_of(wildcards)) else None
            ),
            needs=lambda wildcards, input: " ".join(["--needs", *input.needs]) if input.needs else "",
            reads=lambda wildcards, input: " ".join(["--reads", *input.reads]) if input.reads else "",
            rests_on=lambda wildcards: rests_on(wildcards.experiment),
            out=lambda wildcards: scale.manifest(wildcards.experiment),
            part=lambda wildcards, output: (
                f"--part {part.number} --parts {part.shares} --done {output}" if (part := part_of(wildcards)) else ""
            ),
        shell:
            "OMP_NUM_THREADS={threads} {params.python} ghost.steps.{params.step} --experiment {params.experiment:q} {params.needs}"
            " {params.reads} --out {params.out:q} {params.part} > {log:q} 2>&1"
