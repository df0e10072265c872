"""How a submission's process is started, and how it runs the rebuilt notebook.

Used by mqlab.grading.gradebook and mqlab.grading.execute.
"""
