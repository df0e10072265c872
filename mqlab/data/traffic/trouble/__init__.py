"""What incidents do to a written day: what one is, who takes over, what is sent again, and who is harmed.

mqlab.data.traffic.trouble.incidents has their kinds.
"""
