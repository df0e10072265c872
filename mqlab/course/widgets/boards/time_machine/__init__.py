"""The time machine: any moment of a story, and forks of it."""
