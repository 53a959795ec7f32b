"""OpenMP for the C itself, as a baseline: pragmas before loops that are proven parallel."""
