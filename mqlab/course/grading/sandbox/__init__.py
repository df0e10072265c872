"""Where answers run: a process behind a wall, what it may use, and how values cross."""
