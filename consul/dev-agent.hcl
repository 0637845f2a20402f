# A Consul for developing against: one server on the loopback interface, on the default ports.
#
#   consul agent -ui -config-file=consul/dev-agent.hcl
#
# -ui is Consul's web page, http://127.0.0.1:8500/ui. No setting of a file for it suits every
# version: the old one causes warnings since 1.9, the new one is refused before.
#
# Unlike "consul agent -dev" it keeps its data on disk, so that a restart of Consul with tasks in it
# can be tried: sessions, locks and lock-delays come back as they would in earnest. Not for
# production: one server has no quorum to lose, and there are no ACLs and no TLS.

server           = true
bootstrap_expect = 1

# Relative to where the agent is started; -data-dir=... overrides it. Delete it to begin again.
data_dir = "consul-data"

# Nobody else on the network sees this agent or can join it. client_addr, and so the HTTP API, is
# 127.0.0.1 by default, port 8500.
bind_addr = "127.0.0.1"

performance {
  # 1 is the fastest timing, the one recommended for production too: after a restart the server leads
  # within about 2 s, against up to 10 s with the default of 5.
  raft_multiplier = 1
}

# On SIGTERM a server stays a member by default and its sessions live on; said here because a client
# agent does the opposite: it leaves, and every lock held through it is lost.
leave_on_terminate = false

# No mail from here: neither the check for new versions nor its anonymous signature.
disable_update_check = true

log_level = "INFO"
