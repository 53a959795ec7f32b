"""Evaluation: estimators, intervals, suites and reports."""
