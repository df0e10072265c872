"""A cluster's day in the time machine, for lab 14."""
