# Runs: an experiment -> one run per seed, listed in its manifest. One rule per step, all of one shape: each step receives
# its experiment as JSON and the manifests of the experiments that it needs.

# An experiment of GR00T's runs in an environment of its own: conda's with `--sdm conda`, else that of its interpreter.


def python(experiment):
    if variables := scale.environment(experiment):
        return " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in variables.items()), "python -m ghost.runs.warm"]
        )
    return f"{GROOT_PYTHON} -m" if scale.in_groot(experiment) and not CONDA else "python -m ghost.runs.warm"


def threads(experiment):
    """All cores of this machine, where nothing may run beside it."""
    alone = scale.experiment(experiment).timed and workflow.local_exec
    return (workflow.resource_settings.cores if alone else None) or scale.threads(experiment)


def conda_of(step):
    groot = any(scale.in_groot(row.name) for row in scale.experiments if row.step == step)
    return "../envs/groot.yml" if groot else "../../environment.yml"


def parts(experiment):
    """What the jobs that share an experiment's work leave: nothing, where there is one job."""
    shared = scale.feature_jobs if scale.experiment(experiment).step == "cache_features" else 1
    folder = scale.manifest(experiment).parent / "parts"
    return [folder / f"{part}of{shared}.json" for part in range(1, shared + 1)] if shared > 1 else []


for step in sorted({row.step for row in scale.experiments}):

    rule:
        name:
            step
        input:
            needs=lambda wildcards: [scale.manifest(need) for need in scale.experiment(wildcards.experiment).needs],
            parts=lambda wildcards: parts(wildcards.experiment),
            reads=lambda wildcards: list(scale.experiment(wildcards.experiment).reads),
        output:
            manifest=scale.data / "runs/{experiment}/manifest.json",
        log:
            f"logs/{scale.scale}/{step}/{{experiment}}.log",
        wildcard_constraints:
            experiment="|".join(row.name for row in scale.experiments if row.step == step),
        conda:
            conda_of(step)
        threads: lambda wildcards: threads(wildcards.experiment)
        params:
            step=step,
            python=lambda wildcards: python(wildcards.experiment),
            experiment=lambda wildcards: canonical(scale.declaration(wildcards.experiment)),
            needs=lambda wildcards, input: " ".join(["--needs", *input.needs]) if input.needs else "",
            reads=lambda wildcards, input: " ".join(["--reads", *input.reads]) if input.reads else "",
            code=lambda wildcards: code_hash(*scale.experiment(wildcards.experiment).modules, science=True),
            outside=lambda wildcards: canonical(scale.outside(wildcards.experiment)),
            # another lock is another environment
            locks=lambda wildcards: [
                sha256(Path(workflow.basedir) / lock) for lock in scale.locks(wildcards.experiment)
            ],
        shell:
            "OMP_NUM_THREADS={threads} {params.python} ghost.steps.{params.step} --experiment {params.experiment:q} {params.needs}"
            " {params.reads} --out {output.manifest:q} > {log:q} 2>&1"


# One range of shards per job (`--config feature_jobs=8`); then cache_features finds them. The file of a part is no result:
# it goes when the manifest is there.
rule cache_shards:
    input:
        needs=lambda wildcards: [scale.manifest(need) for need in scale.experiment(wildcards.experiment).needs],
    output:
        part=temp(scale.data / "runs/{experiment}/parts/{part}of{parts}.json"),
    log:
        f"logs/{scale.scale}/cache_shards/{{experiment}}.{{part}}of{{parts}}.log",
    wildcard_constraints:
        part="[0-9]+",
        parts="[0-9]+",
    conda:
        conda_of("cache_features")
    threads: 1
    params:
        python=lambda wildcards: python(wildcards.experiment),
        experiment=lambda wildcards: canonical(scale.declaration(wildcards.experiment)),
        needs=lambda wildcards, input: " ".join(["--needs", *input.needs]),
        manifest=lambda wildcards: scale.manifest(wildcards.experiment),
        code=lambda wildcards: code_hash(*scale.experiment(wildcards.experiment).modules, science=True),
    shell:
        "OMP_NUM_THREADS={threads} {params.python} ghost.steps.cache_shards --experiment {params.experiment:q} {params.needs}"
        " --part {wildcards.part} --parts {wildcards.parts} --done {output.part:q} --out {params.manifest:q} > {log:q} 2>&1"
