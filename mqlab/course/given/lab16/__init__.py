"""What lab 16's notebooks work with: a machine with a switch, orders as units, each step of a part alone."""

from mqlab.course.given.lab16.machine import TrialMachine, unit_of_order
from mqlab.course.given.lab16.trying import tried_groups, tried_pulls, tried_store

__all__ = ["TrialMachine", "tried_groups", "tried_pulls", "tried_store", "unit_of_order"]
