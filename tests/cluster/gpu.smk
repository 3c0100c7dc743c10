# Rules that use a GPU or none, by name alone: what does the profile ask for them, and what do they get?


rule all:
    input:
        expand("{rule}.txt", rule=["cache_features", "train", "rollout", "simulate"]),


for step in ("cache_features", "train", "rollout", "simulate"):

    rule:
        name:
            step
        output:
            f"{step}.txt",
        resources:
            gpu=int(step in ("cache_features", "train")),
        shell:
            "scontrol show job $SLURM_JOB_ID > {output}; env | grep -E '^(CUDA_VIS|GHOST_LINE|TMPDIR)'"
            " >> {output}; sleep 3"
