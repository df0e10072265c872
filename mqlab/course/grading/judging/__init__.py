"""The judge's side of the wall: cases, worlds that answers may use, and verdicts."""
