"""The `cudaperf` command: parses, composes and renders; everything else lives in the library."""
