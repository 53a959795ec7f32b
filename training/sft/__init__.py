"""The warm start: supervised fine-tuning of a small model on generated translations, in the graph's own prompts."""
