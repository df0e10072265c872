"""A day's stores that grow while a program reads them, from a process of its own for each broker.

a written day ──▶ plan: every unit, when it was stored, where it goes; how far each group was by when
process       ──▶ appends whole units to commit log and queues, saves consumerOffset.json; can be killed
live(...)     ──▶ the handle in a notebook: advance, pause, kill, resume, roll, delete_oldest, late

plans, commits     what happens when, computed from the finished stores
growing_store      the files of one store, up to a moment
process, live      a process that carries out orders, and the handle that gives them
"""
