# What the three servers share. Each has ports of its own (server-1.hcl to server-3.hcl), none of them
# a default one, so that they run beside another Consul of this host; run.sh closes the rest.

datacenter       = "dc1"
server           = true
bootstrap_expect = 3

# Joining is tried again until it works: the order in which the servers start is of no importance.
bind_addr      = "127.0.0.1"
retry_join     = ["127.0.0.1:8311", "127.0.0.1:8321", "127.0.0.1:8331"]
retry_interval = "1s"

performance {
  # The fastest timing. After a kill -9 of the leader writes pause for about 3 s; with the default
  # of 5 it is 13 to 20 s, which is why lictor's default lock_delay is 30 s.
  raft_multiplier = 1
}

disable_update_check = true
log_level            = "INFO"
