"""The pytest plugin: a RocketMQ in the process of a project's tests."""
