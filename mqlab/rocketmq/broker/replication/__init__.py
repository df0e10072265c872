"""Master and slave: the link that copies the log, the copying of tables, and what each role may do."""
