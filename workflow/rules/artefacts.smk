# Artefacts: runs -> the cells of each figure and table -> the figures and tables.


def manifests(stage):
    return [scale.manifest(experiment) for experiment in BUILT[stage].experiments]


rule summarize:
    input:
        manifests=lambda wildcards: manifests(wildcards.stage),
    output:
        cells=scale.data / "cells/{stage}.jsonl",
    log:
        f"logs/{scale.scale}/summarize/{{stage}}.log",
    conda:
        "../../environment.yml"
    params:
        artefact=lambda wildcards: BUILT[wildcards.stage].id,
        cells=lambda wildcards: canonical(BUILT[wildcards.stage].declaration()),
        code=lambda wildcards: code_hash("ghost.steps.summarize", *BUILT[wildcards.stage].implementations),
        scale=scale.scale,
    shell:
        "python -m ghost.runs.warm ghost.steps.summarize --artefact {params.artefact} --scale {params.scale} --out {output.cells:q}"
        " --manifests {input.manifests:q} > {log:q} 2>&1"


rule plot:
    input:
        manifests=lambda wildcards: manifests(f"fig_{wildcards.label}"),
    output:
        multiext(str(scale.figures / "{label}"), ".pdf", *([".pgf"] if TEX else [])),
        report(
            scale.figures / "{label}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "fig:{label}"},
        ),
    log:
        f"logs/{scale.scale}/plot/{{label}}.log",
    wildcard_constraints:
        label="|".join(LABELS["plot"]),
    conda:
        "../../environment.yml"
    params:
        out=lambda wildcards: scale.figures / wildcards.label,
        pgf="--pgf" if TEX else "",
        experiments=lambda wildcards: BUILT[f"fig_{wildcards.label}"].experiments,
        code=lambda wildcards: code_hash("ghost.steps.plot", f"ghost.report.plots.{wildcards.label}"),
    shell:
        "python -m ghost.runs.warm ghost.steps.plot --label {wildcards.label} {params.pgf} --out {params.out:q}"
        " --manifests {input.manifests:q} > {log:q} 2>&1"


rule draw:
    input:
        source="paper/tikz/{label}.tikz",
        style="paper/ghost.sty",
    output:
        multiext(str(scale.figures / "{label}"), ".pdf", ".pgf"),
        report(
            scale.figures / "{label}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "fig:{label}"},
        ),
    log:
        f"logs/{scale.scale}/draw/{{label}}.log",
    wildcard_constraints:
        label="|".join(LABELS["draw"]),
    conda:
        "../../environment.yml"
    params:
        out=lambda wildcards: scale.figures / wildcards.label,
        code=code_hash("ghost.steps.draw"),
    shell:
        "python -m ghost.runs.warm ghost.steps.draw --source {input.source:q} --style {input.style:q} --out {params.out:q} > {log:q} 2>&1"


rule tabulate:
    input:
        cells=scale.data / "cells/tab_{label}.jsonl",
    output:
        table=scale.generated / "tab_{label}.tex",
    log:
        f"logs/{scale.scale}/tabulate/{{label}}.log",
    conda:
        "../../environment.yml"
    params:
        layout=lambda wildcards: canonical(BUILT[f"tab_{wildcards.label}"].layout()),
        code=code_hash("ghost.steps.tabulate"),
        scale=scale.scale,
    shell:
        "python -m ghost.runs.warm ghost.steps.tabulate --artefact tab:{wildcards.label} --scale {params.scale}"
        " --cells {input.cells:q} --out {output.table:q} > {log:q} 2>&1"


# A table as a PDF of its own, for who wants no more; the report has them all.
rule typeset_table:
    input:
        table=rules.tabulate.output.table,
        cells=rules.tabulate.input.cells,
        style="paper/ghost.sty",
    output:
        pdf=scale.table_pdf("{label}"),
    log:
        f"logs/{scale.scale}/typeset_table/{{label}}.log",
    wildcard_constraints:
        label="|".join(LABELS["tabulate"]),
    conda:
        "../../environment.yml"
    params:
        code=code_hash("ghost.steps.typeset_table"),
        scale=scale.scale,
    shell:
        "python -m ghost.runs.warm ghost.steps.typeset_table --artefact tab:{wildcards.label} --table {input.table:q}"
        " --cells {input.cells:q} --style {input.style:q} --scale {params.scale} --out {output.pdf:q} > {log:q} 2>&1"
