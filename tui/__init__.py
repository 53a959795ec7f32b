"""The Textual app over the event stream of the graph and over the store."""
