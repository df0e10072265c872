"""The reading half of the store: its files are read and never changed, whether a store has them open or not."""
