"""Reports of a run: one self-contained HTML page, and Markdown."""
