"""Parts of `benchmarks.verdicts_gpu`: what a GPU is needed for to say how good verdicts are."""
