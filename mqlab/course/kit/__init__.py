"""The kit in which exercises are written: say what is asked for, and what a wrong answer is likely to mean.

Labs declare; cases, messages, partial credit and the test of each exercise follow from the declaration.

    Pure     values in, a value out                            values
    Fields   a record, compared name by name                   values
    Rows     a table, row by row                           rows, row_promises
    World    a listener, strategy, class or story in a Lab     world, days, promises
"""

from mqlab.course.kit import slips
from mqlab.course.kit.form import Variant, case_of, variants
from mqlab.course.kit.rows import Rows, Store
from mqlab.course.kit.shapes import record, tuple_of
from mqlab.course.kit.slips import ANY, OneOf, Slip
from mqlab.course.kit.values import Fields, Pure
from mqlab.course.kit.world import World
from mqlab.course.teach.exercises import Call

__all__ = [
    "ANY",
    "Call",
    "Fields",
    "OneOf",
    "Pure",
    "Rows",
    "Slip",
    "Store",
    "Variant",
    "World",
    "case_of",
    "record",
    "slips",
    "tuple_of",
    "variants",
]
