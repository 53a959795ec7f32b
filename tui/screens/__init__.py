"""Screens: the list of runs, one run, help."""
