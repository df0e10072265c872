"""The request/response endpoint every node has: one frame codec, many channels, answers matched by opaque.

Mirrors: the remoting module (NettyRemotingClient, NettyRemotingServer). Lab 00 shows its frames on the timeline.
Left out: TLS, the VIP channel, ACL signatures.
"""

from mqlab.remoting.endpoint import Channel, Handler, Remoting, Reply

__all__ = ["Channel", "Handler", "Remoting", "Reply"]
