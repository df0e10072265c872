"""What is read out of the notebooks that students hand in: the parts of a lab put together, and what was predicted."""
