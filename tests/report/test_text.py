"""The text of the report against the code: each test quotes a sentence and computes what it says.

A sentence that is reworded must be looked at again: `says` fails when the quoted words are gone.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from ghost.agents import algorithm_distillation, rl2, transformer
from ghost.agents import ghost as ghost_agent
from ghost.claims.ledger import LEDGER, numbers, read_ledger
from ghost.data.results import Measured
from ghost.data.trajectories import Sizes as AgentSizes
from ghost.decoders import ghost, mlp
from ghost.dynamics.potentials import CENTRES
from ghost.evaluations.latency import PAPER, one_sample
from ghost.simulations import dwell_time, switch_speed
from ghost.study import EXPERIMENTS, ablation, libero, offline
from ghost.study.analytic import SETTINGS
from ghost.study.builds import load
from ghost.study.switching import IN_DARK_ROOM

WORDS = "three|four|five|six|seven|eight|nine|ten|twenty|fifty|hundred"
COUNTED = "cores?|threads?|GPUs?|seeds|trainings|trials|runs|epochs|tasks|episodes|demonstrations"
TYPED = {
    "a count in words": re.compile(rf"\b(?:{WORDS})\s+(?:\w+\s+)?(?:{COUNTED})\b", re.IGNORECASE),
    "the machine": re.compile(r"\b(?:one|a\s+single|two)\s+(?:cores?|GPUs?|threads?)\b", re.IGNORECASE),
    "what only a stand-in has": re.compile(r"stand-in\s+(?:data|backbone|decoder|assets)|synthetic", re.IGNORECASE),
    "what only recordings are": re.compile(r"recorded\s+(?:robot\s+)?data\b(?!\})", re.IGNORECASE),
}
OF_THE_ARTICLE = re.compile(r"article|published|authors|Wang", re.IGNORECASE)
BESIDE = re.compile(r"\([^()]*article[^()]*\)|\\published\{[^{}]*\}")  # the article's value beside ours
HEADINGS = re.compile(r"\\(?:sub)*section\{[^{}]*\}|\\emph\{[^{}]*\}")


def plain(text: str) -> str:
    """Without comments and headings, and without the texts that depend on a stand-in."""
    text = HEADINGS.sub("", re.sub(r"(?<!\\)%.*", "", text))
    while match := re.search(r"\\standin\{[^{}]*\}\{[^{}]*\}", text):
        end = match.end()
        for _ in range(2):
            depth, end = 1, end + 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: match.start()] + text[end:]
    return text


def typed(text: str) -> list[str]:
    """What a sentence types although it may be otherwise in another build. What the article has may be typed."""
    sentences = re.split(r"(?<=[.?])\s+(?=[A-Z\\$])|\n\s*\n", plain(text))
    return [
        f"{what}: {match[0]!r} in {' '.join(sentence.split())}"
        for sentence in sentences
        if not OF_THE_ARTICLE.search(BESIDE.sub("", sentence))
        for what, pattern in TYPED.items()
        for match in pattern.finditer(sentence)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The chunk takes a while on one core.",
        "Means over five seeds are shown.",
        "It falls in nine of the ten tasks.",
        "On the stand-in data, Ghost is better.",
        r"With five seeds the error is \cell{a} (article, with ten seeds: \published{a}).",
        "The backbone is random. The stand-in backbone reads poses.",
        "They learn from recorded robot data.",
    ],
)
def test_what_another_build_may_have_otherwise_is_found(text):
    assert typed(text), text


@pytest.mark.parametrize(
    "text",
    [
        "The article averages over five seeds.",
        r"On the \standin{tab:a}{dual-arm data set}{stand-in data}{recorded data}, Ghost {\cell{a}} is better.",
        r"A line joins the two runs of one seed. % ten tasks",
    ],
)
def test_what_holds_everywhere_is_left_alone(text):
    assert typed(text) == []


def test_the_report_types_nothing_that_another_build_may_have_otherwise(root):
    """setup.tex and standins.tex say what the stand-ins are, whichever of them a build uses."""
    found = {path.name: typed(path.read_text()) for path in (root / "paper/sections").glob("*.tex")}
    own = typed((root / "paper/own_data/main.tex").read_text())
    found["own_data/main.tex"] = [one for one in own if not one.startswith("what only recordings are")]
    for name in ("setup.tex", "standins.tex"):
        found[name] = [one for one in found[name] if not one.startswith("what only a stand-in has")]
    assert {name: one for name, one in found.items() if one} == {}


@pytest.fixture
def says(root):
    def says(section: str, *quotes: str) -> None:
        text = " ".join((root / f"paper/sections/{section}.tex").read_text().split())
        for quote in quotes:
            assert quote in text, quote

    return says


def settings_of(name: str) -> dict:
    return dict(next(experiment.settings for experiment in EXPERIMENTS if experiment.name == name))


def values(measured: list[Measured]) -> dict[str, float]:
    return {f"{m.condition}/{m.metric}": m.value for m in measured}


def run(module, name: str, **smaller):
    given = {**SETTINGS[name], **smaller}
    made = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    return module.run(module.Settings(**made), seed=0, progress=lambda *_: None)


def test_the_equations_have_the_constants_of_the_code(says):
    well = SETTINGS["switch_speed"]
    says("switching_speed", rf"{well['stiffness']:g}\,(z_1^2 - d^2)^2 - {well['tilt']:g}\,(2c - 1)\, z_1")
    says("switching_speed", rf"= {4 * well['stiffness']:g}\,\bigl(z_1^2 + z_1 \mu_B + \mu_B^2 - d^2\bigr)")
    says("diagnostic", *(rf"\boldsymbol{{\mu}}_{k} = ({x:g}, {y:g})" for k, (x, y) in enumerate(CENTRES, 1)))


def test_the_contraction_ratio_starts_low_rises_and_has_its_minimum_later(says):
    says("switching_speed", "The contraction ratio starts at", "rises until Euler step")
    ratio = run(switch_speed, "switch_speed", scan_resolution=0.05).arrays["ghost/ratio"]
    assert ratio[0] < ratio[1]
    assert ratio.argmin() > 1


def test_the_deviations_from_the_asymptotes_are_largest_farthest_from_the_bifurcation(says):
    says("dwell_time", "The largest relative deviations from the asymptotes", "both farthest from the bifurcation")
    arrays = run(dwell_time, "dwell_time", mus=4, excesses=4, delta_ratios=[2.0], drift_ratios=[0.0]).arrays
    for name in ("normal_form", "double_well"):
        assert np.abs(arrays[f"{name}/dwell"] / arrays[f"{name}/theory"] - 1).argmax() == 3


def test_the_agents_have_the_published_sizes_as_far_as_the_text_says(root, says):
    says("goal_switching", "At full size the transformer has exactly the published number of parameters")
    says("goal_switching", "Ghost has one more", "AD and RL$^2$ agree with the published ones within a hundredth")
    ledger = read_ledger(root / LEDGER)
    modules = {"ghost": ghost_agent, "transformer": transformer, "ad": algorithm_distillation, "rl2": rl2}
    rows = {"ghost": "Ghost", "transformer": "Transformer", "ad": "AD", "rl2": "RL2"}
    more = {}
    for agent, module in modules.items():
        decoder = module.Decoder(module.Settings(**IN_DARK_ROOM[agent][3]), AgentSizes(2, 2, 2))
        published = numbers(ledger.claim(f"tab:meta_rl/{rows[agent]}/params").printed)[0].value
        more[agent] = sum(p.numel() for p in decoder.parameters()) / published - 1, published
    assert more["transformer"][0] == 0
    assert round(more["ghost"][0] * more["ghost"][1]) == 1
    assert max(abs(more[agent][0]) for agent in ("ad", "rl2")) < 0.01


def test_only_with_a_second_encoder_has_the_decoder_with_two_phases_the_published_size(root, says):
    says("method", "from a second encoder", "only with this encoder does the decoder have the published number")
    decoder = ghost.Decoder(ghost.Settings(**offline.FIELD | ablation.DUAL), PAPER)
    count = sum(p.numel() for p in decoder.parameters())
    encoder = sum(p.numel() for p in decoder.refinement_encoder.parameters())
    (claim,) = [c for c in read_ledger(root / LEDGER).claims.values() if "tab:ablation/dual/paper_params" in c.cell]
    published = numbers(claim.printed)[0]
    assert abs(count / 1e6 - published.value) <= published.half_unit
    assert abs((count - encoder) / 1e6 - published.value) > published.half_unit
    assert [p.shape for p in decoder.encoder.parameters()] == [p.shape for p in decoder.refinement_encoder.parameters()]


def test_most_of_the_arithmetic_lies_in_the_compressor(says):
    says("speed", "Most of the arithmetic of both decoders lies in the compressor, which they share")
    batch = one_sample(torch.device("cpu"))
    for module in (ghost, mlp):
        decoder = module.Decoder(module.Settings(), PAPER).eval()
        with torch.no_grad(), FlopCounterMode(display=False) as whole:
            decoder.act(batch)
        with torch.no_grad(), FlopCounterMode(display=False) as compressor:
            decoder.compressor(batch.tokens)
        assert compressor.get_total_flops() > 0.8 * whole.get_total_flops()


def test_the_variant_without_the_contrastive_term_is_otherwise_the_same(says):
    says("offline", r"This last variant has $\lambda_c = 0$ and is otherwise the same", "number of epochs")
    plain_loss, imitation = (settings_of(d.experiment) for d in (offline.PLAIN, offline.IMITATING))
    assert plain_loss.keys() - imitation.keys() == set(offline.CONTRASTIVE)
    assert imitation == {key: plain_loss[key] for key in imitation}
    one, other = (next(e for e in EXPERIMENTS if e.name == d.experiment) for d in (offline.PLAIN, offline.IMITATING))
    assert (one.seeds, one.needs) == (other.seeds, other.needs)
    says("offline", r"It is the row ``imitation only'' of Table~\ref{tab:lightweight}")
    assert offline.IMITATING.text.endswith("imitation only")


def test_one_phase_and_two_are_trained_alike_and_without_the_contrastive_term(says):
    says("offline", "divides the same number of steps between Phase~I and Phase~II")
    says(
        "offline",
        "with the same regularization and the same seeds, and without the contrastive term",
    )
    for short in ablation.TASKS:
        single, dual = (settings_of(f"{phases}_{short}") for phases in ("single", "dual"))
        assert single["steps"] == dual["steps"] + dual["refinement_steps"]
        assert {**dual, **single} == {**dual, "steps": single["steps"]}
        assert not single.get("contrastive")


def test_the_other_decoders_have_the_losses_that_the_text_names(says):
    says("offline", "imitation only, which is the loss of the MLP, the neural ODE and the transformer")
    alone = {decoder.name for decoder in offline.COMPARED if not decoder.losses}
    assert alone == {"MLP", "Neural_ODE", "Transformer"}


def test_holm_corrects_over_the_rows_of_the_article(says):
    says("offline", "Holm's correction leaves these two rows out")
    (table,) = [artefact for artefact in offline.ARTEFACTS if artefact.id == "tab:lightweight"]
    corrected = {cell.name.split("/")[0] for cell in table.cells if cell.estimator == "holm_p"}
    assert corrected == {decoder.name for decoder in offline.COMPARED}


def test_the_contrastive_term_is_where_the_text_says(says):
    says("method", "names the recipe wherever another one is used")
    says(
        "goal_switching",
        "Ghost and the transformer receive the goal and imitate the shortest way, without a contrastive",
    )
    says("offline", "the other half on the recorded actions, without a contrastive term")
    says("closed_loop", "The loss is imitation alone, without the contrastive term")
    used = {experiment.name for experiment in EXPERIMENTS if experiment.settings.get("contrastive")}
    without = {"ghost_distilled", "dark_room_ghost", "ml10_ghost", *libero.TRAINED} - {"libero_push"}
    assert without <= {experiment.name for experiment in EXPERIMENTS}
    assert not used & without
    assert {"libero_push", *(d.experiment for d in (offline.PLAIN, offline.WITH_BASIN, offline.PROPOSED))} <= used


def test_the_environment_seeds_are_what_the_text_says(says):
    says("configurations", "seed $0$, which all single policies have, they are the official init states")
    says("closed_loop", "The first evaluation has the official init states")
    rollouts = [experiment for experiment in libero.EXPERIMENTS if experiment.step == "rollout"]
    assert all(r.settings["env_seed"] == 0 for r in rollouts if not r.settings.get("ensemble"))
    assert libero.ENV_SEEDS[0] == 0
    assert len(set(libero.ENV_SEEDS)) == len(libero.ENV_SEEDS)


def test_rollouts_are_stepped_as_the_text_says(says):
    says("closed_loop", "At the scale of the article the simulation is reset and stepped as in the benchmark's own")
    rollouts = [experiment for experiment in libero.EXPERIMENTS if experiment.step == "rollout"]
    assert {rollout.settings["stepping"] for rollout in rollouts} == {"libero"}
    for scale in ("smoke", "laptop"):
        experiments = load({"scale": scale}).experiments
        assert {e.settings["stepping"] for e in experiments if e.step == "rollout"} == {"fast"}


def test_the_text_describes_the_variants_of_the_attractor_by_their_settings(says):
    """The formulas are tested with the decoder; here: each variant adds one thing to Ghost PG."""
    says("discussion", "The push adds the contrastive term", "The pull adds the mean of", "The quartic potential is")
    added = {name: set(made) - set(libero.GHOST_PG) for name, (_, made, _) in libero.VARIANTS.items()}
    assert added == {
        "libero_push": set(offline.CONTRASTIVE),
        "libero_pull": {"pull"},
        "libero_subspace": {"basin_dims"},
        "libero_quartic": {"quartic"},
    }


def test_every_file_of_the_text_is_in_the_report_or_the_supplement(root: Path):
    documents = [(root / f"paper/{name}.tex").read_text() for name in ("main", "supplement")]
    for path in (root / "paper/sections").glob("*.tex"):
        assert sum(rf"\input{{sections/{path.stem}}}" in text for text in documents) == 1, path
