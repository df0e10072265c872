"""What incidents do to a written day: what one is, who takes over, what is sent again, and who is harmed.

mqlab.traffic.incidents has their kinds.
"""
