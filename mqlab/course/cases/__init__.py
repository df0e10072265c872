"""What each lab asks: one package per lab that holds its MANIFEST (see mqlab.course.teach.exercises).

A course's own lab may be a single module labNN.py in the course's folder ``cases``.
"""
