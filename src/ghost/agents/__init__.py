"""Agents that pursue a goal which changes while they act. B agents, L steps of a window.

An agent is one module with

    TERMS      the names of its losses
    Settings   a frozen dataclass, checked in __post_init__
    gather     gather(settings, runs, seed) -> what it learns from, as `ghost.training.loop.Fit` wants it
    Decoder    an nn.Module, `Decoder(settings, sizes)`, with

        loss_terms(batch, weights, generator) -> {term: scalar}
        begin(B) -> memory                              what it remembers before its first step
        act(memory, seen, noise) -> action [B, d_a]     one step; changes the memory; `noise` [B, d_a] in [0, 1)

What an agent is told decides how hard its task is. In the Dark Room:

    agent                   goal   own past               learns from                        has to find out
    Ghost                   yes    nothing                the shortest way, shown            how to get there
    Transformer             yes    150 steps, rewards     the same                           how to get there
    Algorithm Distillation  no     176 steps, rewards     histories of a Q-learner           where the goal is
    RL²                     no     its recurrent state,   reward, by acting itself           where the goal is
                                   last move and reward

In Meta-World all four are told the task and learn from its scripted expert (`ghost.data.metaworld_demos`).

Sizes, in the Dark Room (published): Ghost 17,923 (17,922; the one more is the additive constant of U, which moves
nothing), Transformer 417,538 (417,538), Algorithm Distillation 421,382 (421,378), RL² 55,047 (54,533). The layouts were
found from the published numbers: two encoder layers of width 128 with two outputs leave 162 and 192 rows of 128 for
embeddings and positions, and a GRU of width 128 with 11 inputs, two means, two deviations and a value has 54,533
parameters. The last two agents draw from three moves along each axis instead, hence their difference.
"""
