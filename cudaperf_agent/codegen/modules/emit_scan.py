"""Running sums."""
