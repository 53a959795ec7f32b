"""The data set behind the ranker: C program families, CUDA variants of each, and their measured times."""
