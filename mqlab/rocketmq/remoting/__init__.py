"""The request/response endpoint every node has: one frame codec, many channels, answers matched by opaque.

Mirrors: the remoting module (NettyRemotingClient, NettyRemotingServer).
Left out: TLS, the VIP channel, ACL signatures.
"""

from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Remoting, Reply

__all__ = ["Channel", "Handler", "Remoting", "Reply"]
