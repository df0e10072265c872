"""`python -m mqlab.cli`: the same as the console script mqlab.

Mirrors: the launcher scripts in RocketMQ's bin folder.
Left out: everything; see mqlab.cli.
"""

from mqlab.cli import main

main(prog_name="mqlab")
