"""How a submission's process is started, and how it runs the rebuilt notebook.

Used by mqlab.course.grading.running.gradebook and mqlab.course.grading.running.execute.
"""
