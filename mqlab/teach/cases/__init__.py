"""What each lab asks: a module a lab, each with its MANIFEST (see mqlab.teach.exercises)."""
