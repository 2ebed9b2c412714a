"""Where jobs get their servers: how schedulers choose them, without a word about links."""
