import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import chromium
from small_build import forge, small_build, write_paper

from conftest import make_runs
from ghost.audit.lookup import display, lookup
from ghost.data.results import Measured, Outcome
from ghost.errors import GhostError
from ghost.report.appendix import anchor
from ghost.runs.records import open_runs
from ghost.steps.audit import audit
from ghost.study import EXPERIMENTS
from ghost.study.builds import load
from ghost.study.declarations import Artefact, Cell
from ghost.study.tables import Column, Row, code, tabulated


def cell(runs, **changes):
    made = {
        "id": "tab:x/loss",
        "experiment": "tiny",
        "against": "",
        "against_condition": "",
        "against_metric": "",
        "condition": "train",
        "metric": "loss",
        "estimator": "mean",
        "unit": "",
        "shown": "0.75",
        "value": 0.75,
        "interval": [0.1, 1.4],
        "n": 2,
        "unpaired": [],
        "sha256": None,
        "runs": runs,
        "reduced": False,
        "stand_ins": [],
    }
    return {**made, **changes}


def shows(monkeypatch, *artefacts):
    """The build of the page has these figures and tables."""
    build = SimpleNamespace(artefacts=artefacts, paper=EXPERIMENTS)
    monkeypatch.setattr("ghost.audit.page.opened", lambda scale: build)


def hostile(manifest, text):
    """Put a text into a record, its id made anew as an attacker would."""
    forge(manifest, 7, lambda record: record.update(host=text, settings={**record["settings"], "note": text}))


ATTACK = '</script><script>window.hit=1</script>"><img src=x onerror="window.hit=2">${window.hit=3}'


@pytest.fixture
def page(tiny_manifest, tmp_path, root, monkeypatch):
    """The page of two runs whose host, settings and cells are hostile texts, with a table that shows one of them."""
    monkeypatch.chdir(root)
    hostile(tiny_manifest, ATTACK)
    runs = [run.run_id for run in open_runs(tiny_manifest)]
    cells = tmp_path / "cells.jsonl"
    made = [
        cell(runs, shown="0.75 ± 0.1"),
        cell(runs, id=f"tab:x/{ATTACK}", shown=ATTACK, unit=ATTACK, metric=ATTACK, estimator="setting", value=None),
        cell(runs, id="tab:lightweight/MLP/p", stand_ins=[ATTACK], estimator="paired_p"),
    ]
    cells.write_text("".join(json.dumps(line) + "\n" for line in made))
    table = tabulated("x", ("Name", Column("loss", "Loss")), [Row("a", (code("a_b"), Cell("loss", "tiny", "loss")))])
    shows(monkeypatch, table)
    audit(cells, (tiny_manifest,), "smoke", tmp_path / "audit.html")
    return tmp_path / "audit.html"


def test_the_page_leads_from_cells_to_runs_and_back(page, tiny_manifest):
    text = page.read_text()
    targets = set(re.findall(r' id="([^"]*)"', text))
    links = set(re.findall(r'href="#([^"]*)"', text))
    assert links
    assert links <= targets
    assert {run.run_id for run in open_runs(tiny_manifest)} <= targets
    assert "https:" not in text


def test_hostile_text_is_text(page):
    """There are two scripts, the data and ours, and ours is the one that the page's own policy names."""
    text = page.read_text()
    assert text.count("<script") == text.count("</script>") == 2
    assert "<img" not in text
    script = text.split("<script>")[1].split("</script>")[0]
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in text.split("Security-Policy")[1]
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["runs"][0]["host"] == ATTACK


def test_both_sides_of_a_comparison_are_shown(tiny_manifest, tmp_path, root, monkeypatch):
    """Also where they are two conditions of the same runs."""
    monkeypatch.chdir(root)
    shows(monkeypatch)
    runs = [run.run_id for run in open_runs(tiny_manifest)]
    made = [cell(runs), cell(runs, against="tiny", condition="other", against_condition="train", id="tab:x/ratio")]
    (tmp_path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    audit(tmp_path / "cells.jsonl", (tiny_manifest,), "smoke", tmp_path / "audit.html")
    data = json.loads((tmp_path / "audit.html").read_text().split('id="data">')[1].split("</script>")[0])
    alone, ratio = data["cells"]
    assert [(point["value"], point["against"]) for point in alone["points"]] == [(0.7, False), (0.8, False)]
    assert [(point["value"], point["against"]) for point in ratio["points"]] == [(0.7, True), (0.8, True)]
    assert (alone["versus"], ratio["versus"]) == ("", "against train/loss of tiny")


def test_a_run_names_the_experiments_that_it_rests_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shows(monkeypatch)
    write_paper()
    config = small_build()
    audit(config.data / "cells.jsonl", tuple(config.data.glob("runs/*/manifest.json")), "smoke", tmp_path / "page.html")
    data = json.loads((tmp_path / "page.html").read_text().split('id="data">')[1].split("</script>")[0])
    needs = {run["experiment"]: run["needs"] for run in data["runs"]}
    assert needs["cvae_offline"] == ["cvae", "dual_arm_features"]
    assert needs["dual_arm"] == []


@pytest.mark.slow
@pytest.mark.skipif(chromium.available() is None, reason="needs Debian's chromium")
def test_the_page_in_a_real_browser(page, tiny_manifest):
    """Opened, clicked, typed into and looked at on a narrow screen."""
    address = page.as_uri()
    first = open_runs(tiny_manifest)[0].run_id
    with chromium.Browser() as browser:
        browser.open(address)
        assert (
            browser.evaluate("document.querySelector('[data-table=\"tab:x\"]').innerText")
            == "Name\tLoss\na_b\t0.75 ± 0.1"
        )
        assert browser.evaluate("document.getElementById('count').textContent") == "3 of 3 cells"
        # a number of a table opens its runs, from the keyboard
        browser.evaluate("document.querySelector('[data-table] a').focus()")
        browser.key("Enter", "\r", 13)
        browser.wait("document.getElementById('panel').open")
        assert browser.evaluate("document.getElementById('panel-title').textContent") == "tab:x/loss"
        assert browser.evaluate("document.querySelectorAll('svg[data-plot] circle').length") == 2
        assert browser.evaluate("document.querySelectorAll('[data-run]').length") == 2
        assert browser.evaluate("document.querySelector('svg[data-lineage] text').textContent") == "tiny"
        assert browser.evaluate("document.activeElement.id") == "close"
        browser.key("Escape", code=27)
        browser.wait("!document.getElementById('panel').open")
        browser.wait("document.activeElement.dataset.cell === 'tab:x/loss'")  # back where one came from
        # search and filters
        browser.key("/", "/")
        browser.wait("document.activeElement.id === 'search'")
        for letter in "mlp":
            browser.key(letter, letter)
        browser.wait("document.getElementById('count').textContent === '1 of 3 cells'")
        assert browser.evaluate("document.querySelector('[data-table] a').classList.contains('dim')")
        choose = """(id, value) => {
            const element = document.getElementById(id);
            element.value = value;
            element.dispatchEvent(new Event('input', {bubbles: true}));
            return document.getElementById('count').textContent;
        }"""
        assert browser.evaluate(f"({choose})('search', '')") == "3 of 3 cells"
        assert browser.evaluate(f"({choose})('verdict', 'not comparable')") == "1 of 3 cells"
        assert browser.evaluate(f"({choose})('verdict', '')") == "3 of 3 cells"
        assert browser.evaluate(f"({choose})('doubt', 'none')") == "2 of 3 cells"
        assert browser.evaluate(f"({choose})('doubt', '')") == "3 of 3 cells"
        assert browser.evaluate(f"({choose})('run', '{first}')") == "3 of 3 cells"
        # a link from the PDF opens its cell; one to a run opens its record
        browser.open(f"{address}#tab:lightweight/MLP/p")
        browser.wait("document.getElementById('panel').open")
        assert "not comparable" in browser.evaluate("document.getElementById('detail').innerText")
        browser.open(f"{address}#{first}")
        browser.wait("document.getElementById('panel').open")
        assert browser.evaluate("document.getElementById('panel-title').textContent") == "tiny, seed 7"
        # hostile texts are shown, and nothing of them ran; nothing was fetched
        browser.open(f"{address}#{anchor(f'tab:x/{ATTACK}')}")
        browser.wait("document.getElementById('panel').open")
        assert ATTACK in browser.evaluate("document.getElementById('panel-title').textContent")
        assert browser.evaluate("window.hit") is None
        browser.size(360, 740)
        browser.wait("document.documentElement.scrollWidth <= 360")
        assert not browser.errors
        assert {request.split(":")[0] for request in browser.requests} <= {"file", "data", "about"}


@pytest.fixture
def trained_page(tmp_path, root, monkeypatch):
    """The page of four runs, two of which have training curves, with a wide table and two hundred cells."""
    monkeypatch.chdir(root)
    trained, tested = tmp_path / "runs/trained/manifest.json", tmp_path / "runs/tested/manifest.json"
    make_runs(
        trained,
        lambda seed: Outcome([], {"training/loss": seed / np.arange(1, 301), "training/bc": np.full(3, np.nan)}),
        name="trained",
        step="train",
        settings={"epochs": 300, "widths": [8, 4]},
    )
    make_runs(tested, lambda seed: Outcome([Measured("all", "mse", seed / 10)]), name="tested", needs=[trained])
    runs = [run.run_id for run in open_runs(tested)]
    made = [cell(runs, id=f"tab:x/{k}", experiment="tested", condition="all", metric="mse") for k in range(200)]
    (tmp_path / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    columns = tuple(Column(str(k), f"Architecture {k}", lambda of: Cell("0", "tested", "mse")) for k in range(9))
    table = tabulated("x", columns, [Row("a", (), "tested")], more=[Cell(str(k), "tested", "mse") for k in range(200)])
    shows(monkeypatch, table)
    audit(tmp_path / "cells.jsonl", (trained, tested), "smoke", tmp_path / "audit.html")
    return tmp_path / "audit.html"


@pytest.mark.slow
@pytest.mark.skipif(chromium.available() is None, reason="needs Debian's chromium")
def test_the_runs_in_a_real_browser(trained_page):
    """Every run is listed, filtered, ordered, shown with its curves, and compared with another."""
    rows = "[...document.querySelectorAll('#run-table tr[data-of]')].filter((row) => !row.hidden)"
    names = f"{rows}.map((row) => row.cells[1].innerText)"
    with chromium.Browser() as browser:
        browser.open(trained_page.as_uri())
        assert browser.evaluate("document.getElementById('runs').hidden")
        browser.evaluate("document.querySelector('#tabs a[href=\"#runs\"]').click()")
        browser.wait("!document.getElementById('runs').hidden && document.getElementById('numbers').hidden")
        assert browser.evaluate("document.getElementById('run-count').textContent") == "4 of 4 runs"
        said = browser.evaluate("document.querySelector('#run-table tr[data-of]').innerText")
        assert re.search(r"trained, seed 7 .*\tfinished.*\ttrain\t.+ s\t.+ MB\t.*CPU h\t", said, re.DOTALL)
        assert browser.evaluate("document.querySelectorAll('#run-table svg').length") == 2  # the trained ones
        assert browser.evaluate("document.querySelectorAll('tr[data-not-run]').length") == len(EXPERIMENTS)
        # filters and order
        choose = """(id, value) => {
            const element = document.getElementById(id);
            element.value = value;
            element.dispatchEvent(new Event('input', {bubbles: true}));
        }"""
        browser.evaluate(f"({choose})('run-step', 'train')")
        assert [name.split(" ")[0] for name in browser.evaluate(names)] == ["trained,", "trained,"]
        browser.evaluate(f"({choose})('run-step', '')")
        browser.evaluate(f"({choose})('run-search', 'seed tested')")
        assert browser.evaluate("document.getElementById('run-count').textContent") == "2 of 4 runs"
        browser.evaluate(f"({choose})('run-search', '')")
        browser.evaluate(f"({choose})('run-state', 'not run')")
        assert browser.evaluate("document.getElementById('run-count').textContent") == "0 of 4 runs"
        browser.evaluate(f"({choose})('run-state', '')")
        assert browser.evaluate(names)[0].startswith("trained, seed 7")
        browser.evaluate("document.querySelector('#run-table th button').click()")
        assert browser.evaluate(names)[0].startswith("tested, seed 7")
        # compare two: a third cannot be picked, and the address can be shared
        assert browser.evaluate("document.getElementById('compare').disabled")
        for row in (2, 3):
            browser.evaluate(f"document.querySelectorAll('#run-table tr[data-of] input')[{row}].click()")
        assert browser.evaluate("document.querySelectorAll('#run-table input:disabled').length") == 2
        browser.evaluate("document.getElementById('compare').click()")
        browser.wait("document.getElementById('panel').open")
        title = "trained, seed 7 and trained, seed 8"
        assert browser.evaluate("document.getElementById('panel-title').textContent") == title
        assert browser.evaluate("document.querySelectorAll('#detail svg[data-curve=\"2\"] path').length") == 2
        differs = browser.evaluate("[...document.querySelectorAll('#compared tr')].map((row) => row.innerText)")
        assert "seed\t7\t8" in differs
        assert not [line for line in differs if line.startswith(("setting", "step"))]  # these are alike
        browser.open(browser.evaluate("location.href"))
        browser.wait("document.getElementById('panel').open")
        assert browser.evaluate("document.getElementById('panel-title').textContent") == title
        # from a cell to a run, to its curve, and back
        browser.open(f"{trained_page.as_uri()}#tab:x/0")
        browser.wait("document.getElementById('panel').open")
        browser.evaluate("document.querySelector('[data-run] a').click()")
        browser.wait("document.getElementById('panel-title').textContent === 'tested, seed 7'")
        assert "tab:x/0" in browser.evaluate("document.getElementById('detail').textContent")
        browser.evaluate("location.hash = data.runs.find((run) => run.experiment === 'trained').id")
        browser.wait("document.getElementById('panel-title').textContent === 'trained, seed 7'")
        line = browser.evaluate("document.querySelector('#detail path.line').getAttribute('d')")
        heights = [float(point.split(",")[1]) for point in re.split("[ML]", line)[1:]]
        assert len(heights) == 60
        assert heights == sorted(heights)  # the loss falls: its line goes down the screen
        browser.key("Escape", code=27)
        browser.wait("!document.getElementById('panel').open")
        browser.wait("location.hash === '#runs'")
        assert not browser.errors


@pytest.mark.slow
@pytest.mark.skipif(chromium.available() is None, reason="needs Debian's chromium")
def test_the_page_on_a_phone(trained_page):
    """Filters leave the screen free, search goes to the find, and what is wider than the screen can be scrolled to."""
    with chromium.Browser(390, 844) as browser:
        for part, bar in (("numbers", "filters"), ("runs", "run-filters")):
            browser.open(f"{trained_page.as_uri()}#{part}")
            height = f"document.getElementById('{bar}').getBoundingClientRect().height"
            assert browser.evaluate(height) < 844 / 8
            browser.evaluate(f"document.querySelector('#{bar} summary').click()")
            assert browser.evaluate(height) < 844 / 2
            browser.evaluate(f"document.querySelector('#{bar} summary').click()")
            assert browser.evaluate("document.documentElement.scrollWidth") == 390
            cut_off = """[...document.querySelectorAll('table')].filter((table) => {
                const around = table.closest('.wide');
                return table.getBoundingClientRect().right > 390 && getComputedStyle(around).overflowX !== 'auto';
            }).length"""
            assert browser.evaluate(cut_off) == 0
        assert browser.evaluate("document.getElementById('run-table').getBoundingClientRect().right") <= 390
        browser.open(trained_page.as_uri())
        assert browser.evaluate("document.getElementById('cells').getBoundingClientRect().right") <= 390
        at = "document.querySelector('.found').getBoundingClientRect()"
        seen = f"{at}.top >= 0 && {at}.bottom <= innerHeight"
        browser.evaluate("document.getElementById('search').focus()")
        for letter in "x/187":
            browser.key(letter, letter)
        browser.wait("document.getElementById('count').textContent === '1 of 200 cells'")
        browser.wait(seen)
        assert "tab:x/187" in browser.evaluate("document.querySelector('.found').innerText")
        browser.evaluate("document.getElementById('search').value = ''")
        for letter in "x/1":  # 1, 10 to 19, 100 to 199
            browser.key(letter, letter)
        found = []
        for _ in range(3):
            browser.wait(seen)
            found.append(browser.evaluate("document.querySelector('.found').id"))
            browser.key("Enter", "\r", 13)
        assert found == ["tab:x/1", "tab:x/10", "tab:x/11"]
        assert not browser.errors


def test_marks_are_shown_never_hidden():
    said = display(cell([], reduced=True, stand_ins=["backbone"]))
    assert said == "0.75  [reduced scale; stand-in: backbone]"
    assert display(cell([], estimator="series", shown="curve", n=12)) == "curve of 12 points"


def test_before_the_first_run_the_command_that_makes_it_is_named(root, tmp_path, monkeypatch):
    config = load({"scale": "smoke"}, root)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GhostError, match="`snakemake all` makes it"):
        lookup(config, "fig:method")


def test_what_is_not_built_is_listed_after_the_cells(root, tmp_path, monkeypatch):
    config = load({"scale": "smoke"}, root)
    monkeypatch.chdir(tmp_path)
    config.data.mkdir(parents=True)
    made = [cell([]), cell([], id="tab:x/mse")]
    (config.data / "cells.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made))
    assert lookup(config, "tab:x") == "tab:x/loss  0.75\ntab:x/mse   0.75"
    assert "fig:method" not in lookup(config, "tab:")
    config = replace(config, artefacts=(Artefact("tab", "later"),))
    assert lookup(config, "tab:").endswith("\ntab:later  not built")
