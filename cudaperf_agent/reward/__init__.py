"""What a candidate is worth: verifiable, structural (ranker) and composite rewards."""
