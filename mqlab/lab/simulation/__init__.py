"""Simulation testing: random work and random faults over whole clusters, judged when the dust has settled.

Like the chaos tests of RocketMQ's openchaos, but in virtual time and repeatable: a seed is a run.

    plan = draw(7)                 what happens, as plain data: the world, the members, the work, the faults
    outcome = run(plan)            plays it, waits for the dust to settle, judges it by a model of its own
    small = shrink(plan, outcome)  the same failure with fewer events
    explore(small.story, **small.settings)    in a notebook: the time machine

Many seeds, one after another, are tried by `mqlab sim` (mqlab.cli.sim).

Left out: reset offsets, broadcasting groups.
"""

from mqlab.lab.simulation.drawing import draw
from mqlab.lab.simulation.mine import on_own_parts
from mqlab.lab.simulation.model import Wrong
from mqlab.lab.simulation.plan import RunPlan
from mqlab.lab.simulation.running import Outcome, run
from mqlab.lab.simulation.shrinking import shrink

__all__ = ["Outcome", "RunPlan", "Wrong", "draw", "on_own_parts", "run", "shrink"]
