"""LIBERO-10 in closed loop: the environment, primitive assets, scripted experts, demonstrations and rollouts.

    assets.py        which assets are used: a path, LIBERO's own, or the primitives
    things.py        what LIBERO-10 is made of, as boxes and cylinders; primitives.py writes them as assets
    environment.py   one task as MuJoCo simulates it: reset to an official init state, step, look, success
    experts.py       a scripted expert for each of the ten tasks, decided from the state alone
    demos.py         demonstrations of the experts, in LeRobot's format
    policy.py        a trained decoder in the loop: observe, plan a chunk, execute its beginning, plan again

Only `environment.py` imports LIBERO and robosuite.
"""
