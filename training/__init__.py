"""Training: data, the ranker, warm start, GRPO and evaluation, over the same graph that users run."""
