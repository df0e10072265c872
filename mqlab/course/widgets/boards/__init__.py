"""A folder per board: its Python, its kept runs and its JavaScript."""
