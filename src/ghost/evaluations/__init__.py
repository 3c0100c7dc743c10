"""What is measured on trained decoders, one module each: `Settings`, and

evaluate(settings, cache, decoders, *, seed, progress) -> Outcome

with the feature cache and the decoders that were trained with `seed`, by the name of their experiment.
"""
