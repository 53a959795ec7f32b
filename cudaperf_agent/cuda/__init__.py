"""What a candidate does: compile it, run it on a GPU or on the CPU emulator, time it, and give a verdict."""
