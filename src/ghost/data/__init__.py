"""Demonstrations and samples of them: LeRobot-format data sets, made data sets, the feature cache."""
