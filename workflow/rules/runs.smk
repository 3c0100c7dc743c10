# Runs: an experiment's row -> one run per seed, listed in its manifest.


rule simulate:
    output:
        manifest=scale.data / "runs/{experiment}/manifest.json",
    log:
        f"logs/{scale.scale}/simulate/{{experiment}}.log",
    threads: 1
    params:
        row=lambda wildcards: canonical(scale.row(wildcards.experiment)),
        code=lambda wildcards: code_hash(*scale.experiment(wildcards.experiment).modules, science=True),
    shell:
        "OMP_NUM_THREADS={threads} python -m ghost.simulate --row {params.row:q} --out {output.manifest:q} > {log:q} 2>&1"
