# Report: all cells -> macros -> the PDFs and the audit page.

MANIFESTS = [scale.manifest(experiment.name) for experiment in scale.experiments]
# What the report consists of, as a parameter: one more or fewer makes the rules below run again.
CONTENTS = [*BUILT, *(experiment.name for experiment in scale.experiments)]
SECTIONS = sorted(map(str, (scale.text / "sections").glob("*.tex")))
SECTIONS += [str(path) for path in sorted(scale.text.glob("studies/*.tex")) if f"tab_{path.stem}" in BUILT]


rule collect:
    input:
        cells=expand(scale.data / "cells/{stage}.jsonl", stage=BUILT),
        manifests=MANIFESTS,
    output:
        cells=scale.data / "cells.jsonl",
        results=scale.data / "results.csv",
        metrics=expand(scale.data / "metrics/{name}", name=metric_names(scale.artefacts)),
    log:
        f"logs/{scale.scale}/collect.log",
    conda:
        "../../environment.yml"
    params:
        contents=CONTENTS,
        metrics=scale.data / "metrics",
        scale=scale.scale,
        code=code_hash("ghost.steps.collect"),
    shell:
        "python -m ghost.runs.warm ghost.steps.collect --cells {input.cells:q} --manifests {input.manifests:q}"
        " --scale {params.scale} --out-cells {output.cells:q} --out-results {output.results:q}"
        " --out-metrics {params.metrics:q} > {log:q} 2>&1"


rule macros:
    input:
        cells=rules.collect.output.cells,
        ledger="paper/claims.yaml",
        sentences="paper/sentences.yaml",
    output:
        numbers=scale.generated / "numbers.tex",
        provenance=scale.generated / "provenance_entries.tex",
        verdicts=scale.generated / "verdict_entries.tex",
    log:
        f"logs/{scale.scale}/macros.log",
    conda:
        "../../environment.yml"
    params:
        built=[artefact.id for artefact in BUILT.values()],
        out=scale.generated,
        page=scale.page,
        scale=scale.scale,
        code=code_hash("ghost.steps.macros"),
    shell:
        "python -m ghost.runs.warm ghost.steps.macros --cells {input.cells:q} --scale {params.scale} --out {params.out:q} --page {params.page:q}"
        " --built {params.built} > {log:q} 2>&1"


rule typeset:
    input:
        main=str(scale.text / "main.tex"),
        supplement=str(scale.text / "supplement.tex"),
        text=SECTIONS,
        style="paper/ghost.sty",
        references="paper/references.bib",
        numbers=rules.macros.output,
        cells=rules.collect.output.cells,
        figures=expand(scale.figures / "{label}.pgf", label=LABELS["plot"] + LABELS["draw"]),
        tables=expand(scale.generated / "tab_{label}.tex", label=LABELS["tabulate"]),
    output:
        pdf=report(
            scale.pdf,
            caption="../report/pdf.rst",
            category="Report",
            labels={"file": "the report"},
        ),
        supplement=report(
            scale.supplement,
            caption="../report/supplement.rst",
            category="Report",
            labels={"file": "the supplement"},
        ),
    log:
        f"logs/{scale.scale}/typeset.log",
    conda:
        "../../environment.yml"
    params:
        contents=[*CONTENTS, *SECTIONS],
        figures=scale.figures,
        generated=scale.generated,
        ready=f"python -m ghost.runs.warm ghost.cli ready --scale {scale.scale} &&" if scale.camera_ready else "",
        code=code_hash("ghost.steps.typeset"),
    shell:
        "({params.ready} python -m ghost.runs.warm ghost.steps.typeset --main {input.main:q} --supplement {input.supplement:q}"
        " --figures {params.figures:q} --generated {params.generated:q} --cells {input.cells:q} --out {output.pdf:q}"
        " --out-supplement {output.supplement:q}) > {log:q} 2>&1"


rule notebook:
    input:
        source="workflow/notebooks/{notebook}.py",
        features=scale.manifest("dual_arm_features"),
        trained=scale.manifest("ghost"),
    output:
        page=report(
            scale.data / "notebooks/{notebook}.html",
            caption="../report/notebook.rst",
            category="Report",
            labels={"file": "{notebook}"},
        ),
    log:
        f"logs/{scale.scale}/notebook/{{notebook}}.log",
    conda:
        "../../environment.yml"
    params:
        # of the wildcards alone: Snakemake does not compare parameters that come from the input
        code=lambda wildcards: code_hash(
            "ghost.steps.notebook",
            "ghost.decoders.ghost",
            *imports(Path(f"workflow/notebooks/{wildcards.notebook}.py")),
        ),
    shell:
        "python -m ghost.runs.warm ghost.steps.notebook --source {input.source:q} --features {input.features:q} --trained {input.trained:q}"
        " --out {output.page:q} > {log:q} 2>&1"


rule audit:
    input:
        cells=rules.collect.output.cells,
        manifests=MANIFESTS,
        ledger="paper/claims.yaml",
        page=expand("src/ghost/audit/{name}", name=["page.html.jinja", "page.js", "page_runs.js"]),
        figures=expand(scale.figures / "{label}.png", label=LABELS["plot"] + LABELS["draw"]),
    output:
        page=report(
            scale.data / "audit.html",
            caption="../report/audit.rst",
            category="Report",
            labels={"file": "the audit page"},
        ),
    log:
        f"logs/{scale.scale}/audit.log",
    conda:
        "../../environment.yml"
    params:
        contents=CONTENTS,
        scale=scale.scale,
        tables=lambda wildcards: canonical({artefact.id: artefact.layout() for artefact in scale.artefacts}),
        code=code_hash("ghost.steps.audit"),
    shell:
        "python -m ghost.runs.warm ghost.steps.audit --cells {input.cells:q} --manifests {input.manifests:q} --scale {params.scale}"
        " --figures {input.figures:q} --out {output.page:q} > {log:q} 2>&1"


# The sha256 of all of the above, which `ghost audit --verify` compares and `ghost seal` signs.
rule inventory:
    input:
        files=OUTPUTS,
        manifests=MANIFESTS,
    output:
        inventory=scale.inventory,
    log:
        f"logs/{scale.scale}/inventory.log",
    conda:
        "../../environment.yml"
    params:
        contents=[*CONTENTS, *map(str, OUTPUTS)],
        code=code_hash("ghost.steps.inventory"),
    shell:
        "python -m ghost.runs.warm ghost.steps.inventory --files {input.files:q} --manifests {input.manifests:q}"
        " --out {output.inventory:q} > {log:q} 2>&1"
