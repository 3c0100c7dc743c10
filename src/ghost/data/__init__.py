"""Demonstrations and what is drawn from them: LeRobot-format data sets, the dual-arm stand-in, the feature cache."""
