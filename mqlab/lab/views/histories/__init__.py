"""What a group saw of every message, from a journal: for verify."""
