"""The controller over HTTP: routes, tokens and roles, limits, events as a stream, metrics, logs.

Everything here needs the extra `serve`; nothing is imported here, so that commands can say so politely.
"""
