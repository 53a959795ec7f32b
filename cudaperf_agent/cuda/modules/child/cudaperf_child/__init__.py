"""What runs inside a sandboxed Python process, with torch and nothing of the package around it."""
