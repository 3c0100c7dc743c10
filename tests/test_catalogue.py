"""What the Snakemake workflow catalogue asks for: a described configuration, lint that is answered, a report."""

from __future__ import annotations

import re
import zipfile

import pytest
import yaml

from conftest import SMOKE, call


def test_every_key_of_the_configuration_is_described(root):
    schema = yaml.safe_load((root / "workflow/schemas/config.schema.yaml").read_text())
    described = re.findall(r"^\| `(\w+)` \|", (root / "config/README.md").read_text().split("## What")[0], re.M)
    assert {"scale", *described} == schema["properties"].keys()


def test_the_catalogue_entry_names_what_works(root):
    usage = yaml.safe_load((root / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage["software-stack-deployment"]["conda"] is True
    assert usage["report"] is True
    assert usage["mandatory-flags"]["flags"].startswith("--config scale=")


@pytest.mark.slow
def test_the_lint_finds_only_what_is_answered(root):
    """config/README.md says why these stay."""
    said = call(root, "snakemake", "--lint", *SMOKE, check=False)
    found = re.findall(r"^    \* (.*?)(?: in line \d+\.)?:?$", said.stdout + said.stderr, re.M)
    assert set(found) == {
        "Environment variable PATH used but not asserted with envvars directive",
        "Environment variable PYTHONPATH used but not asserted with envvars directive",
        "Mixed rules and functions in same snakefile.",
        "No log directive defined",
    }


@pytest.mark.slow
def test_snakemakes_report_has_every_figure_the_pdf_and_the_audit_page(project, tmp_path):
    call(project, "snakemake", "--report", str(tmp_path / "report.zip"), *SMOKE)
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        names = archive.namelist()
        (results,) = [archive.read(name).decode() for name in names if name.endswith("report.html")]
        texts = "".join(
            archive.read(name).decode(errors="replace") for name in names if name.endswith((".html", ".js"))
        )
    assert len([name for name in names if name.endswith(".png")]) >= len(
        list((project / "data/smoke/figures").glob("*.png"))
    )
    assert {"ghost.pdf", "ghost_supplement.pdf"} <= {name.rsplit("/", 1)[-1] for name in names}
    assert [name for name in names if name.endswith("audit.html")]
    assert "fig:switch_speed" in texts
    assert results
