# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A walk through one trained Ghost
#
# This page shows what the decoder does with a held-out sample: the potential that the latent descends, the path that it
# takes, and what happens when another task uses its final latent `z*`. Every number is computed below, from a feature
# cache and one training run. Set the two paths and run the cells. The pipeline does the same with
# `python -m ghost.steps.notebook`.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from ghost.data.features import FeatureCache
from ghost.data.samples import Samples
from ghost.evaluations.offline import task_means
from ghost.evaluations.predict import gather, per_task, predict, squared_errors
from ghost.runs.records import open_runs
from ghost.training.checkpoint import load_decoder

# %% tags=["parameters"]
features = Path(os.environ.get("GHOST_FEATURES", "data/laptop/runs/dual_arm_features/manifest.json"))
trained = Path(os.environ.get("GHOST_TRAINED", "data/laptop/runs/ghost/manifest.json"))

# %%
torch.set_num_threads(1)
cache = FeatureCache.open(features)
run = open_runs(trained)[0]
ghost = load_decoder(run)
train, test = cache.split("sample")
samples = Samples(cache, test)
positions = per_task(cache, test)
names = list(positions)
print(f"run {run.run_id}, seed {run.seed}: {sum(p.numel() for p in ghost.parameters()):,} parameters")
print(f"{len(train)} training and {len(test)} test samples of {len(names)} tasks")
print(f"stand-ins: {', '.join(run.record()['stand_ins']) or 'none'}")

# %% [markdown]
# ## Has it learned anything?
#
# The bars show the error of the decoder on each task, and the error of always predicting the task's mean action chunk.
# Where the two bars are equal, the decoder ignores its input, and the rest of this page has no meaning.

# %%
error = squared_errors(predict(ghost, samples, seed=run.seed), cache, test).mean(axis=1)
mean_error = squared_errors(task_means(cache, train, test), cache, test).mean(axis=1)
place = np.arange(len(names))
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
axes.bar(place - 0.2, [error[where].mean() for where in positions.values()], 0.4, label="Ghost")
axes.bar(place + 0.2, [mean_error[where].mean() for where in positions.values()], 0.4, label="mean chunk")
axes.set_xticks(place, names, rotation=30, ha="right")
axes.set_ylabel("test MSE")
_ = axes.legend()

# %% [markdown]
# ## The potential, in a slice
#
# `U(z; e)` has as many dimensions as the latent. The slice below is the plane in which the latents of all test samples
# vary most. The context `e` is that of one sample. The crosses are the path of this sample, and the dot is its `z*`.
# Where the drift matters, `z*` need not be a minimum of `U`, not even in the slice, and a path may go uphill: the next
# section says why.

# %%
z = gather(ghost.latents, samples, dim=1)  # [n + 1, samples, d_z]
centre = z[-1].mean(axis=0)
_, _, plane = np.linalg.svd(z[-1] - centre, full_matrices=False)
plane = plane[:2]  # [2, d_z]
shown = [positions[name][0] for name in names[:2]]
reach = 1.2 * np.abs((z[:, shown] - centre) @ plane.T).max()
axis = np.linspace(-reach, reach, 61)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
figure, both = plt.subplots(ncols=2, figsize=(8, 3.4), layout="constrained", sharey=True)
for axes, name, sample in zip(both, names[:2], shown, strict=True):
    batch = samples.batch(torch.tensor([sample]))
    with torch.no_grad():
        e = ghost.context(batch).expand(len(grid), -1)
        u = ghost.potential(torch.from_numpy((centre + grid @ plane).astype(np.float32)), e).reshape(61, 61)
    path = (z[:, sample] - centre) @ plane.T
    drawn = axes.contourf(axis, axis, u, levels=20, cmap="viridis")
    axes.plot(*path.T, "x-", color="white")
    axes.plot(*path[-1], "o", color="white")
    axes.set_title(name)
_ = figure.colorbar(drawn, ax=both, label="U")

# %% [markdown]
# ## Why a path may end at a higher potential
#
# A step of Phase I moves the latent along `-grad U + b`. The first part always lowers `U`. The drift `b` may raise it:
# a step changes `U` by `dt (grad U . b - |grad U|^2)`, to first order. Nothing in the loss asks the drift to follow the
# potential; it asks for the right actions. So a path that ends higher than it began is no error of the integration. It
# shows that the drift, not the potential, brings the latent to its place. The plot has the change of `U` since the
# start, as mean over the test samples, and the shares of the two parts.

# %%
change, descent, work = [], [], []  # [n + 1, samples] each, over Phase I
for batch in samples.chunks(torch.arange(len(test))):
    with torch.no_grad():
        e = ghost.context(batch)
        path = ghost.latents(batch)[: ghost.settings.steps + 1]
        u = torch.stack([ghost.potential(at, e) for at in path])
        slope = torch.stack([ghost.potential.gradient(at, e) for at in path])
        drift = torch.stack([ghost.drift(at, e) for at in path])
    first = torch.zeros_like(u[:1])
    change.append(u - u[0])
    descent.append(torch.cat([first, -(slope * slope).sum(-1)[:-1].cumsum(0) * ghost.settings.dt]))
    work.append(torch.cat([first, (slope * drift).sum(-1)[:-1].cumsum(0) * ghost.settings.dt]))
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
parts = {"U since the start": change, "by the gradient": descent, "by the drift": work}
for (label, part), style in zip(parts.items(), ("o-", "s--", "^:"), strict=True):
    axes.plot(torch.cat(part, dim=1).mean(dim=1), style, label=label)
axes.axhline(0, color="0.7", linewidth=0.8)
axes.set(xlabel="step", ylabel="change of U")
_ = axes.legend()
higher = (torch.cat(change, dim=1)[-1] > 0).float().mean()
print(f"{100 * higher:.0f} % of the paths end at a higher potential than they began at")

# %% [markdown]
# ## The path down
#
# The left plot shows the norm of the gradient at every step, as mean and standard deviation over the test samples. The
# right plot shows the distance to `z*`, with one line per task. This distance ends at zero by definition.

# %%
gradient = gather(ghost.gradient_norms, samples, dim=1)  # [n + 1, samples]
distance = np.linalg.norm(z - z[-1], axis=-1)
figure, (left, right) = plt.subplots(ncols=2, figsize=(8, 3), layout="constrained")
steps = np.arange(len(z))
left.errorbar(steps, gradient.mean(axis=1), gradient.std(axis=1), marker="o", capsize=3)
left.set(xlabel="step", ylabel="norm of the gradient", ylim=(0, None))
for name, where in positions.items():
    right.plot(steps, distance[:, where].mean(axis=1), label=name)
right.set(xlabel="step", ylabel="distance to z*")
right.legend(fontsize=6)
print(f"the gradient's norm changes by {100 * (gradient[-1].mean() / gradient[0].mean() - 1):+.1f} % along the path")

# %% [markdown]
# ## The swap
#
# Each sample of a row's task is decoded with a `z*` of the column's task. The diagonal swaps samples within a task.
# `z*` holds more than the task, so a swap within the task also increases the error.

# %%
rng = np.random.default_rng(run.seed)
swapped = np.empty((len(names), len(names)))
for i, into in enumerate(positions.values()):
    for j, source in enumerate(positions.values()):
        foreign = torch.from_numpy(z[-1, rng.choice(source, size=len(into))])
        with torch.no_grad():
            read = ghost.readout(foreign).numpy()
        swapped[i, j] = squared_errors(read, cache, test[into]).mean() / error[into].mean()
figure, axes = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
drawn = axes.imshow(swapped, cmap="magma")
axes.set_xticks(place, names, rotation=90)
axes.set_yticks(place, names)
axes.set(xlabel="z* taken from", ylabel="sample of")
figure.colorbar(drawn, label="error over own error")
apart = ~np.eye(len(names), dtype=bool)
print(f"across tasks {swapped[apart].mean():.2f} times, within a task {swapped[~apart].mean():.2f} times the own error")
