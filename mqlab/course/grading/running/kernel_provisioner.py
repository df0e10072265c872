"""Lets jupyter_client take a KernelCopy where it would start a process.

Used by mqlab.course.grading.running.nbval_engine. jupyter_client finds the class by its entry in the factory of
provisioners.
"""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

from mqlab.course.grading.running.kernel_copy import KernelCopy

NAME = "mqlab-kernel-copy"


class CopyProvisioner(LocalProvisioner):
    """The first kernel is the copy that waits, each later one a process of its own."""

    waiting: ClassVar[KernelCopy]

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """What connects to the kernel."""
        if self.waiting.is_wanted:
            return await super().launch_kernel(cmd, **kwargs)
        self.waiting.start(cmd, kwargs.get("env") or dict(os.environ), kwargs.get("cwd") or os.getcwd())
        kernel: Any = self.waiting  # it answers what a Popen answers
        self.process = kernel
        self.pid = self.pgid = self.waiting.pid  # a session has the number of its first process
        return self.connection_info


def use(kernel: KernelCopy) -> None:
    """From now on the first kernel of this process is this one."""
    CopyProvisioner.waiting = kernel
    factory = KernelProvisionerFactory.instance()
    entry_point = f"{CopyProvisioner.__module__}:{CopyProvisioner.__qualname__}"
    factory.provisioners[NAME] = EntryPoint(NAME, entry_point, KernelProvisionerFactory.GROUP_NAME)
    factory.default_provisioner_name = NAME
