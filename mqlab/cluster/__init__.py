"""Real clients and real clusters: a served broker, and a program's clients of any cluster."""
