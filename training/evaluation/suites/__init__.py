"""The suites: our own, and readers of benchmarks that lie in the user's folders."""
