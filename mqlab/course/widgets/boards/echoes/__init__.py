"""The echo chart: every call by two times."""
