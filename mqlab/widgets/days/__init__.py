"""Boards over the tables of a day that was collected once: what a knob changes is reckoned in the page.

biography.py     what happened to one message, in the log and in each group, event by event
percentiles.py   two samples whose sizes are moved: the percentile of both together, and the mean of the two
echoes.py        when a message was stored, and when its group was called with it
watermark.py     what a stream that counts by time keeps, gives and drops, batch by batch
"""
