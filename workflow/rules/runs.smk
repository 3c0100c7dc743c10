# Runs: an experiment's row -> one run per seed, listed in its manifest. A rule per step, all of one shape: what a step is
# told is its row, what it reads are the manifests of the experiments that it needs.

for step in sorted({row.step for row in scale.experiments}):

    rule:
        name:
            step
        input:
            needs=lambda wildcards: [scale.manifest(need) for need in scale.experiment(wildcards.experiment).needs],
        output:
            manifest=scale.data / "runs/{experiment}/manifest.json",
        log:
            f"logs/{scale.scale}/{step}/{{experiment}}.log",
        wildcard_constraints:
            experiment="|".join(row.name for row in scale.experiments if row.step == step),
        conda:
            "../../environment.yml"
        threads: 1
        params:
            step=step,
            row=lambda wildcards: canonical(scale.row(wildcards.experiment)),
            needs=lambda wildcards, input: " ".join(["--needs", *input.needs]) if input.needs else "",
            code=lambda wildcards: code_hash(*scale.experiment(wildcards.experiment).modules, science=True),
        shell:
            "OMP_NUM_THREADS={threads} python -m ghost.{params.step} --row {params.row:q} {params.needs}"
            " --out {output.manifest:q} > {log:q} 2>&1"
