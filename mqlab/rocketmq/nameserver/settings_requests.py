"""Requests about the name server's key-value configuration and its own settings.

Mirrors: DefaultRequestProcessor.
"""

from __future__ import annotations

import dataclasses

from mqlab.errors import UsageError
from mqlab.rocketmq.nameserver.state import NameServerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer, Refused, text, text_or_null
from mqlab.rocketmq.remoting.settings import changes_to, lines_of, parsed_lines, refuse_black_listed
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand

NEVER_UPDATED = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")
"""Settings that no request may change, even if configBlackList does not have them."""


class SettingsRequests:
    """Handlers of the requests that read and change settings."""

    def __init__(self, state: NameServerState) -> None:
        self._state = state

    def put_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """PUT_KV_CONFIG."""
        if not {"namespace", "key"} <= request.ext_fields.keys():
            raise Refused(ResponseCode.SYSTEM_ERROR, "namespace or key is null")
        self._state.kv_config.put(text(request, "namespace"), text(request, "key"), text(request, "value"))
        return request.reply()

    def get_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_KV_CONFIG."""
        namespace, key = text_or_null(request, "namespace"), text_or_null(request, "key")
        value = self._state.kv_config.get(namespace, key)
        if value is None:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace} Key: {key}")
        return request.reply(value=value)

    def delete_kv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """DELETE_KV_CONFIG."""
        self._state.kv_config.delete(text(request, "namespace"), text(request, "key"))
        return request.reply()

    def get_kvlist_by_namespace(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_KVLIST_BY_NAMESPACE."""
        namespace = text_or_null(request, "namespace")
        values = self._state.kv_config.namespace(namespace)
        if values is None:
            raise Refused(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}")
        return request.reply(body=bodies.kv_table_to_json(values))

    def get_namesrv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """GET_NAMESRV_CONFIG: every setting, one name=value per line."""
        return request.reply(body="\n".join(sorted(lines_of(self._state.config))).encode("utf-8"))

    def update_namesrv_config(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """UPDATE_NAMESRV_CONFIG: all named settings, or none if one is wrong; NO_PERMISSION for the black list."""
        values = parsed_lines(request.body or b"")
        refuse_black_listed(values, NEVER_UPDATED, self._state.config.config_black_list)
        config = self._state.config
        try:
            self._state.change_config(dataclasses.replace(config, **changes_to(config, values)))
        except UsageError as error:
            raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
        return request.reply()
