"""What mqadmin and RocketMQ Dashboard answer, as dataclasses that print as tables.

Mirrors: DefaultMQAdminExt. ``lab.admin`` is one; `mqlab admin` prints its answers.
"""

from mqlab.admin.admin import Admin

__all__ = ["Admin"]
