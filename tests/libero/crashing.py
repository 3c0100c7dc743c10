"""A benchmark of vla-eval's whose simulator dies."""

from vla_eval.benchmarks.libero.benchmark import LIBEROBenchmark


class Crashing(LIBEROBenchmark):
    def reset(self, task):
        raise RuntimeError("the simulator died")
