"""The kit in which exercises are written: say what is asked for, and what a wrong answer is likely to mean.

Labs declare; cases, messages, partial credit and the test of each exercise follow from the declaration.

    Pure     values in, a value out                            values
    Fields   a record, compared name by name                   values
    Rows     a table, row by row                           rows, row_promises
    World    a listener, strategy, class or story in a Lab     world, days, promises
"""

from mqlab.teach.exercises import Call
from mqlab.teach.kit import slips
from mqlab.teach.kit.form import Variant, case_of, variants
from mqlab.teach.kit.rows import Rows, Store
from mqlab.teach.kit.shapes import record, tuple_of
from mqlab.teach.kit.slips import ANY, OneOf, Slip
from mqlab.teach.kit.values import Fields, Pure
from mqlab.teach.kit.world import World

__all__ = [
    "ANY", "Call", "Fields", "OneOf", "Pure", "Rows", "Slip", "Store", "Variant", "World", "case_of", "record", "slips",
    "tuple_of", "variants",
]  # fmt: skip
