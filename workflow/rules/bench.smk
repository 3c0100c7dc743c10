# Benchmarks: not part of `all`, which reads what they wrote last. They want a quiet machine.


rule bench:
    input:
        features=scale.manifest("dual_arm_features"),
    conda:
        "../../environment.yml"
    shell:
        "python -m ghost.steps.bench --features {input.features:q} --out data/bench"
