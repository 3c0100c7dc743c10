"""Settings of the tiny policies that the tests train."""

TRAINING = {"split": "episode", "epochs": 1, "batch_size": 64, "learning_rate": 1e-3}
WIDTHS = {"hidden": 16, "d_context": 8, "d_latent": 8}
PHASE = {"phases": 8, "phase": 0.1}
POLICIES = {
    "mlp": ("mlp", {}),
    "mlp_phase": ("mlp_phase", PHASE),
    "gru_phase": ("gru_phase", {**PHASE, "d_recurrent": 8, "window": 3, "gap": 8}),
    "ghost": ("ghost", {}),
    "ghost_pg": ("ghost_phase", PHASE),
    "ghost_pz": ("ghost_phase", {**PHASE, "persistent": True, "window": 3, "gap": 8}),
    "pull": ("ghost_phase", {**PHASE, "pull": 0.1}),
    "subspace": ("ghost_phase", {**PHASE, "basin_dims": 4}),
    "quartic": ("ghost_phase", {**PHASE, "quartic": True}),
}
