"""What each lab asks: one package per lab that holds its MANIFEST (see mqlab.course.teach.exercises).

Public cases are here. Hidden ones, which learners must not have, are in solutions/grading, a file per lab.
A course's own lab may be a single module labNN.py in the course's folder ``cases``.
"""
