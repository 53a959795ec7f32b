"""What to translate: C source to `Task`, its legal inputs, and the oracle that knows the right answers."""
