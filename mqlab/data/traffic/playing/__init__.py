"""Short days played by real brokers and clients, and plans that repair them."""
