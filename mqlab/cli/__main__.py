"""`python -m mqlab.cli`: the same as the console script mqlab.

Like the launcher scripts in RocketMQ's bin folder; see mqlab.cli.
"""

from mqlab.cli import main

main(prog_name="mqlab")
