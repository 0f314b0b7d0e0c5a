"""The libraries that are compared: a module a kind of work, each with a table `PEERS`."""
