"""Who proposes candidates: served models, local models, the generator of variants, and scripted answers."""
