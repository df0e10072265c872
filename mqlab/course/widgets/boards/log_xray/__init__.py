"""The log X-ray: a store's files after every action."""
