"""Tests of trained decoders and agents. Each kind of test is one module with `Settings` and

evaluate(settings, cache, decoders, *, seed, progress) -> Outcome

which receives the feature cache and the decoders that were trained with `seed`, by the name of their experiment.
"""
