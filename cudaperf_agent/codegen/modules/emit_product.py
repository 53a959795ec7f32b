"""Matrix products in shared-memory tiles."""
