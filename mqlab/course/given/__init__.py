"""What the notebooks of a lab are given to work with: days, tables, streams."""
