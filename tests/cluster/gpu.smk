# The rules that later need a GPU, by name alone: what does the profile ask for them, and what do they get?


rule all:
    input:
        expand("{rule}.txt", rule=["cache_features", "train", "rollout", "simulate"]),


for step in ("cache_features", "train", "rollout", "simulate"):

    rule:
        name:
            step
        output:
            f"{step}.txt",
        shell:
            "scontrol show job $SLURM_JOB_ID > {output}; env | grep -E '^(CUDA_VIS|GHOST_LINE|TMPDIR)'"
            " >> {output}; sleep 3"
