"""Ghost Attractor Networks: a reproducible paper pipeline."""
