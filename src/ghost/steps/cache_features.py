"""Cache the features that a backbone gives for the samples of a data set.

The experiment needs the demonstrations, then what the backbone needs. Its module is a backbone (`ghost.backbones`
describes the contract); the settings are the backbone's and those of the sampling (`ghost.data.sampling`) in one flat
list. `ghost.data.features` describes the files. A shard is a unit of work: a killed step goes on after the last
finished shard, and several jobs may share the shards (`ghost.study.parts`). In memory are the pictures of a
batch and the tokens of a shard.
"""

from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import numpy as np

from ghost.backbones import Backbone, Observations
from ghost.data.features import INDEX, Encoded, Sizes, shard_lengths, write_shard
from ghost.data.lerobot import LeRobotDataset
from ghost.data.results import Outcome
from ghost.data.sampling import Draw, Drawn, Shares, WholeEpisodes, draw, frames, open_demos
from ghost.files import link, write_json
from ghost.runs.driver import Job, Plan, Split, Unit, main
from ghost.runs.units import Kept, Made


def cache_features(job: Job) -> Plan:
    """Draw samples of a data set and cache the features that a backbone gives for them."""
    sampling = WholeEpisodes if "stride" in job.settings else Shares if "test_share" in job.settings else Draw
    settings, drawing = job.read(job.module.Settings, sampling)
    sizes = Sizes(settings.tokens, settings.d_token, drawing.d_state, drawing.horizon, drawing.d_action)
    backbone: Backbone = job.module.start(settings, sizes, [job.only_run(k) for k in range(1, len(job.needs))])

    @cache
    def dataset() -> LeRobotDataset:
        opened = open_demos(job.only_run(0))
        if backbone.facts:
            opened.require_normalisation()  # checks that it is there before the long work
        return opened

    def run(unit: Unit) -> Split:
        samples, per_shard = draw(drawing, dataset(), unit.seed), drawing.samples_per_shard
        starts = range(0, len(samples), per_shard)
        lengths = shard_lengths(len(samples), per_shard)
        return Split(
            {f"{k:05d}": [start, start + n] for k, (start, n) in enumerate(zip(starts, lengths, strict=True))},
            partial(encode_shard, backbone, dataset(), samples, backbone.batch_size or per_shard),
            partial(join, unit.folder, samples, dataset(), sizes, per_shard),
            parallel=False,  # the backbone is loaded once
            noun="shards",
        )

    return Plan(run, facts=backbone.facts, lock=backbone.lock)


def encode_shard(
    backbone: Backbone, dataset: LeRobotDataset, samples: Drawn, batch_size: int, folder: Path, shard: list[int]
) -> Made:
    """Encode the samples from shard[0] to shard[1], a batch at a time."""
    start, stop = shard
    parts = [slice(k, min(k + batch_size, stop)) for k in range(start, stop, batch_size)]
    batches = [encode(backbone, dataset, samples, part) for part in parts]
    actions = [batch.actions for batch in batches if batch.actions is not None]
    encoded = Encoded(np.concatenate([batch.tokens for batch in batches]), np.concatenate(actions) if actions else None)
    return Made({"samples": stop - start}, write_shard(folder, encoded))


def encode(backbone: Backbone, dataset: LeRobotDataset, samples: Drawn, part: slice) -> Encoded:
    episode, timestep = samples.episode[part], samples.timestep[part]
    seen = Observations(
        instructions=tuple(dataset.tasks[int(index)] for index in samples.small["task"][part]),
        columns={name: value[part] for name, value in samples.columns.items()},
        frames=lambda camera: frames(dataset, camera, episode, timestep),
        cameras=dataset.cameras,
        state=samples.small["state"][part],
        step=np.stack([episode, timestep], axis=1),
    )
    return backbone.encode(seen)


def join(
    folder: Path, samples: Drawn, dataset: LeRobotDataset, sizes: Sizes, per_shard: int, made: list[Kept]
) -> Outcome:
    """Link the units' files as <kind>/<number>.npy and list them in the index."""
    hashes = {}
    for number, kept in enumerate(made):
        for name, known in kept.files.items():
            shard = f"{name.removesuffix('.npy')}/{number:05d}.npy"
            link(kept.folder / name, folder / shard)
            hashes[shard] = known
    names = [dataset.tasks[index] for index in sorted(dataset.tasks)]
    scales = dataset.normalisation()
    index = {
        "sizes": asdict(sizes),
        "task_names": names,
        "samples_per_shard": per_shard,
        "shards": sorted(hashes),
        "starts": dataset.starts(),
        "cameras": list(dataset.cameras),
        "convention": dataset.info.get("convention", ""),
        "normalisation": scales.plain() if scales else None,
    }
    write_json(folder / INDEX, index)
    return samples.outcome((INDEX, *sorted(hashes)), hashes)


if __name__ == "__main__":
    main(cache_features)
