# What the three servers share. Each has its own loopback address (server-1.hcl to server-3.hcl), so
# that all of them can use the default ports. Linux answers on the whole of 127.0.0.0/8; on other
# systems the addresses 127.0.0.2 and 127.0.0.3 must be added to the loopback interface first.

datacenter       = "dc1"
server           = true
bootstrap_expect = 3

# Joining is tried again until it works: the order in which the servers start is of no importance.
retry_join     = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
retry_interval = "1s"

performance {
  # The fastest timing. After a kill -9 of the leader writes pause for about 3 s; with the default
  # of 5 it is 13 to 20 s, which is why lictor's default lock_delay is 30 s.
  raft_multiplier = 1
}

disable_update_check = true
log_level            = "INFO"
