"""LIBERO-10 in closed loop: the environment, primitive assets, scripted experts, demonstrations and rollouts.

    assets.py        chooses the assets: a path, LIBERO's own, or the primitives things.py        the things of
    LIBERO-10 as the boxes and cylinders of shapes.py; primitives.py writes them as assets environment.py   one task in
    MuJoCo: reset to an official init state, step, look, success experts.py       a scripted expert for each task, made
    of the skills in picking.py and fixtures.py, which use hand.py demos.py         demonstrations of the experts, in
    LeRobot's format policy.py        a trained decoder in the loop: observe, plan a chunk, execute its beginning, plan
    again

Only `environment.py` imports LIBERO and robosuite.
"""
