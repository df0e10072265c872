"""Topics besides the orders that a day has when they are asked for: delayed messages, and transactions."""
