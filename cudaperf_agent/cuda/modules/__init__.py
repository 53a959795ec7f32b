"""Verification of PyTorch candidates: the module and the candidate run in sandboxed processes of their own."""
