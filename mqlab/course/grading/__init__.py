"""Grading: answers run in a sandbox, and a process that they cannot reach judges what they do.

Used by ``mqlab grade`` and ``mqlab check``; no lab opens it.

    submission ─▶ rebuild (pristine lab + answer cells) ─▶ nbval runs it ─▶ record ─▶ reports
                                                             │ trusted kernel: checks, Labs, expected values
                                                             └ JSON lines ▶ sandboxed worker: the answers

The checks are not here: the public ones come with the labs, the hidden ones are in solutions/grading.
"""
