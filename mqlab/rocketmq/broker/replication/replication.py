"""One broker's replication: the server for its slaves, and as a slave the client of its master and the copied tables.

Mirrors: the HAService of DefaultMessageStore and BrokerController's slave half.

    master                              slave
    HaServer ◀────── log ────────────── HaClient              port listenPort + 1
    Remoting ◀────── tables ─────────── SlaveSynchronize      the normal port
    both addresses come with the name server's answer to the slave's registration

Left out: controller mode, acting masters.
"""

from __future__ import annotations

from mqlab.rocketmq.broker.replication.ha_client import HaClient
from mqlab.rocketmq.broker.replication.ha_server import HaServer
from mqlab.rocketmq.broker.replication.slave_synchronize import SlaveSynchronize
from mqlab.rocketmq.broker.state import BrokerState

HA_ADDRESS_MIN_LENGTH = 6


class Replication:
    """The replication of one broker. Only slaves use ``client`` and ``synchronize``."""

    def __init__(self, state: BrokerState, server: HaServer, client: HaClient, synchronize: SlaveSynchronize) -> None:
        self._is_slave = state.identity.is_slave
        self._configured_master = state.store.config.ha_master_address
        self.server = server
        self.client = client
        self.synchronize = synchronize

    @property
    def _has_configured_master(self) -> bool:
        return len(self._configured_master) >= HA_ADDRESS_MIN_LENGTH

    def start(self) -> None:
        """Accept links of slaves; as a slave, look for the master."""
        self.server.start()
        if self._is_slave:
            if self._has_configured_master:
                self.client.set_master_address(self._configured_master)
            self.client.start()
            self.synchronize.start()

    def stop(self) -> None:
        """Close all links."""
        self.synchronize.stop()
        self.client.stop()
        self.server.stop()

    def registered(self, ha_address: str | None, master_address: str | None) -> None:
        """Use the addresses of the master that a name server's answer to a slave's registration holds.

        An answer without a replication address changes nothing; one without a master's address stops the copying of
        tables. Mirrors handleRegisterBrokerResult.
        """
        if not self._is_slave:
            return
        if ha_address and not self._has_configured_master:
            self.client.set_master_address(ha_address)
        self.synchronize.master_address = master_address or None

    def __repr__(self) -> str:
        return f"<Replication {self.client!r}>" if self._is_slave else f"<Replication {self.server!r}>"
