"""The frame of all boards: data made once in Python, shown by one module in a page."""
