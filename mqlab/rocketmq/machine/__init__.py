"""The files, the clock and the memory of this machine, for a store that no broker drives and for readers of stores."""
