"""LIBERO-10 in closed loop: the environment, primitive assets, scripted experts, demonstrations and rollouts.

Only `environment.py` imports LIBERO and robosuite.
"""
