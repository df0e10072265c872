"""The tables of a day, for lab 11."""
