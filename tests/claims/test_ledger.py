"""Every number of the article is a claim in the ledger, or of a kind that is excused with a reason."""

import os
from collections import Counter
from pathlib import Path

import pytest

from ghost.claims.article import keys, read_article, read_numbers, value_of, write_numbers
from ghost.claims.ledger import LEDGER, NUMBERS, NonResult, numbers, read_ledger
from ghost.claims.tex import Article
from ghost.errors import GhostError

ARTICLE = os.environ.get("GHOST_ARTICLE")


@pytest.fixture(scope="module")
def ledger(request):
    return read_ledger(request.config.rootpath / LEDGER)


@pytest.fixture(scope="module")
def printed(request):
    return read_numbers(request.config.rootpath / NUMBERS)


def missing(claims, printed):
    covered = Counter(key for claim in claims for at in claim.at for key in keys(at))
    return [item for item in printed if not item.non_result and item.key not in covered], covered


def test_no_number_of_the_article_is_missing(ledger, printed):
    left, covered = missing(ledger.claims.values(), printed)
    assert not left, [f"line {item.line}: {item.before}[{item.printed}]{item.after}" for item in left]
    assert max(covered.values()) == 1, "a number that two claims name"
    assert set(covered) <= {item.key for item in printed}


def test_a_number_that_no_claim_names_is_found(ledger, printed):
    fewer = [claim for claim in ledger.claims.values() if claim.id != "tab:lightweight/CVAE/d"]
    assert [item.key for item in missing(fewer, printed)[0]] == ["465.4", "477.5"]


def test_what_the_ledger_prints_is_what_the_article_prints(ledger, printed):
    by_key = {item.key: item for item in printed}
    for claim in ledger.claims.values():
        for at, text in claim.at.items():
            stated = [abs(number.value) for number in numbers(text)]
            assert stated == [value_of(by_key[key].printed) for key in keys(at)], (claim.id, at)


def test_every_excuse_has_a_reason_and_is_used(ledger, printed):
    used = {item.non_result for item in printed} - {""}
    assert used == {kind.name for kind in ledger.non_results}
    assert all(len(kind.reason) > 10 for kind in ledger.non_results)
    assert sum(bool(item.non_result) for item in printed) < len(printed) / 3


def test_ids_are_not_doubled_and_judges_are_known(tmp_path, root):
    text = (root / LEDGER).read_text()
    line = next(line for line in text.splitlines() if "tab:lightweight/CVAE/d" in line and line.startswith("  - {"))
    (tmp_path / "doubled.yaml").write_text(f"{text}{line}\n")
    with pytest.raises(GhostError, match="tab:lightweight/CVAE/d is listed twice"):
        read_ledger(tmp_path / "doubled.yaml")
    (tmp_path / "judge.yaml").write_text(text.replace(line, line.replace("statistical", "exakt")))
    with pytest.raises(GhostError, match="no judge 'exakt'; did you mean exact"):
        read_ledger(tmp_path / "judge.yaml")


def test_the_reader_sees_numbers_and_leaves_out_what_is_none(tmp_path):
    text = "\n".join(
        [
            r"\begin{abstract}",
            r"A 2.3M Ghost, 4{,}614$\times$ fewer, $3 \times 10^{-4}$, five seeds, $p = .0019$. % 99",
            r"\end{abstract}",
            r"\section{Results}",
            r"\label{sec:results}",
            r"\cite{wang2024} in Fig.~\ref{fig:2} \includegraphics[width=0.5\textwidth]{x1} LIBERO-10",
            r"\begin{table}[t]\caption{20 trials}\label{tab:x}",
            r"\begin{tabular}{lc}",
            r"MLP & $0.0189 \pm 0.0005$ \\",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
    (tmp_path / "a.tex").write_text(text)
    kinds = [NonResult("names", "a benchmark's name", "LIBERO-10")]
    found = [each.printed for each in read_article(Article(tmp_path / "a.tex"), kinds)]
    assert [item.printed for item in found if item.place == "abstract"] == [
        *("2.3", "4{,}614", r"3 \times 10^{-4}", "five", ".0019"),
    ]
    assert [(item.printed, item.non_result) for item in found if item.place == "sec:results"] == [("10", "names")]
    assert [item.printed for item in found if item.place == "tab:x"] == ["20", "0.0189", "0.0005"]


@pytest.mark.skipif(not ARTICLE, reason="the article is not ours to ship: GHOST_ARTICLE names its source")
def test_the_list_is_what_the_article_has(ledger, tmp_path, root):
    write_numbers(Path(ARTICLE), ledger.non_results, tmp_path / "numbers.csv")
    assert (tmp_path / "numbers.csv").read_bytes() == (root / NUMBERS).read_bytes()


@pytest.mark.parametrize("printed", ["nan", "inf", "1e999999999", "0.5 ± nan", "1e9999", "--1"])
def test_a_number_that_is_none_is_one_line(printed):
    with pytest.raises(GhostError, match="is not a number"):
        numbers(printed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("margins:", "margin:"), "must be an object with margins"),
        (lambda t: t.replace("judge: exact", "judge: [exact]", 1), "judge must be text"),
        (lambda t: t.replace('printed: "', 'printed: 7 #"', 1), "must be text|is not YAML"),
        (lambda t: t + "claims: []\n", "stands twice"),
        (lambda t: t.replace("of: cells", "of: cell"), "ablation/ten_tasks: of: it must be like claims\\|cells"),
        (lambda t: t + "more: *nothing\n", "is not YAML"),
        (lambda t: "[" * 1000, "nested deeper"),
        (lambda t: "", "must be an object"),
    ],
)
def test_a_ledger_of_another_form_is_one_line(root, tmp_path, change, message):
    (tmp_path / "claims.yaml").write_text(change((root / LEDGER).read_text()))
    with pytest.raises(GhostError, match=message):
        read_ledger(tmp_path / "claims.yaml")
