"""What each tab of the run screen shows of one turn: pure functions from a view to a renderable."""
