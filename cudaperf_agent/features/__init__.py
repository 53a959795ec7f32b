"""What a candidate looks like: structural features φ(y), extended features and hints, from the source alone."""
