"""Multi-turn GRPO by the same graph: rollouts, credit, advantages, and the trainer that learns from them."""
