"""PyTorch candidates: the text that every generated module file shares, and what writes such files."""
