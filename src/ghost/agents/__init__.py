"""Agents that pursue a goal which changes while they act. B agents, L steps of a window.

An agent is one module with

    TERMS      the names of its losses
    Settings   a frozen dataclass, checked in __post_init__
    gather     gather(settings, runs) -> the samples that it learns from, for the training loop
    Decoder    an nn.Module, `Decoder(settings, sizes)`, with

        loss_terms(batch, weights, generator) -> {term: scalar}
        begin(B) -> memory                              its memory before the first step
        act(memory, seen, noise) -> action [B, d_a]     one step; changes the memory; `noise` [B, d_a] in [0, 1)

How hard the task is depends on what an agent knows. In the Dark Room:

    agent                   goal   own past               learns from                        must find out
    Ghost                   yes    nothing                demonstrations of shortest ways    how to get there
    Transformer             yes    150 steps, rewards     the same                           how to get there
    Algorithm Distillation  no     176 steps, rewards     histories of a learning algorithm  where the goal is
    RL²                     no     its recurrent state,   reward, by acting itself           where the goal is
                                   last move and reward

In Meta-World all four know the task and learn from its scripted expert (`ghost.data.metaworld_demos`).

Their sizes in the Dark Room, with the published ones: Ghost 17,923 (17,922; the one more is the additive constant of U,
which moves nothing), Transformer 417,538 (417,538), Algorithm Distillation 421,382 (421,378), RL² 55,047 (54,533). The
layouts were inferred from the published numbers. Two encoder layers of width 128 with two outputs leave 162 and 192
vectors of width 128 for embeddings and positions. A GRU of width 128 with 11 inputs, two means, two deviations and a
value has 54,533 parameters. Here the last two agents choose among three moves along each axis, hence their difference.
"""
