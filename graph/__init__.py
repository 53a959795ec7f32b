"""The LangGraph state machine: generate, compile, test, measure, assess, feedback; at most five turns."""
