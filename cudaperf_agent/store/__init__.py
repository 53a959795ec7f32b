"""What is remembered: SQLAlchemy models and the repository of runs."""
