"""Master and slave: the link that copies the log, the tables that are copied beside it, and what each role may do."""
