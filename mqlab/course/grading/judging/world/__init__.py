"""The judge's Lab as an answer behind the wall may use it: verb by verb, asked through a pipe.

verbs        the table: what kind of object it is, and what an answer may do with it
settings     what an answer may set when it makes a client
world        the judge's side: numbers for objects, and the one way to use them
stand_in     the answer's side: what an answer holds instead of the object
"""
