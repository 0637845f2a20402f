# What a lictor daemon may do, for the default layout lictor/default/.
#
# One policy for each host, since a session belongs to the node that its agent runs on:
#
#   sed 's/NODE/host-a/' consul/policy-daemon.hcl | consul acl policy create -name lictor-daemon-host-a -rules -
#   consul acl token create -policy-name lictor-daemon-host-a -description "lictor on host-a"
#
# The token's SecretID goes into the file named by consul.token_file, readable for lictor alone.
#
# Another queue: replace "lictor/default/". Another layout (examples/existing-layout): replace each
# path by the one that the configuration names; two prefixes that overlap are resolved by Consul in
# favour of the longer one. Several queues: repeat the rules from tasks/ to partitions for each.
# A prefix here ends in "/", or it would reach into its neighbours: "tasks" also matches "tasks2/x".

# NODE is the name of the Consul agent that the daemon talks to (as "consul members" shows it), not
# lictor's own "node". Needed to create, renew, read and destroy the session.
# If consul.addresses lists agents of other nodes too, repeat the rule for each of them, or use
# session_prefix "" { policy = "write" }: then this token can end every session of the cluster.
# Without client agents (Kubernetes) any server may answer, so it has to be session_prefix "" there,
# agent_prefix "" below, and no rule for the service, with "consul": {"register": false}: see "Without
# client agents" in README.md.
session "NODE" { policy = "write" }

# Claim, retry, finish. "write" contains "read" and "list", so it also serves the blocking queries,
# with acl.enable_key_list_policy too.
key_prefix "lictor/default/tasks/" { policy = "write" }

# Dead letters; and the results, which are only written where "history" is on.
key_prefix "lictor/default/dead/" { policy = "write" }
key_prefix "lictor/default/done/" { policy = "write" }

# The lock. NOBODY BUT DAEMONS may write this key: Consul checks the right to the key and nothing
# else, so any holder of it can delete a held lock, and then a second daemon leads at once, without
# lock-delay, while the first one still runs its jobs. (Even a plain PUT would reset its LockIndex.)
key "lictor/default/leader" { policy = "write" }

# This member's own entry, and the others' to be shown.
key_prefix "lictor/default/members/" { policy = "write" }

# Schedules: with each tick's task the leader writes lastTick. Without this rule no tick makes a task.
key_prefix "lictor/default/schedules/" { policy = "write" }

# The operators' switches are obeyed, never set: a daemon that is broken into cannot resume itself.
# With "write" the web page can pause, resume and step down; with "read" it is told that it may not,
# and "lictor pause" does it with the operator's own token.
key "lictor/default/control" { policy = "read" }

# How many partitions the queue has: none, for most. Without this rule a daemon takes the number for 1,
# and would lead beside the leaders of a queue that others have divided.
key "lictor/default/partitions" { policy = "read" }

# Only for a queue with "rate_limit": its bucket, which every claim writes. Without this rule each
# leader counts by itself, and the limit does not hold over a change of leader.
# key "lictor/default/rate" { policy = "write" }

# Registration of the service "lictor" with its health check and the tag "leader", at the local
# agent. Registered with this token, the agent also keeps the catalog in step with it: while the
# daemon runs, the token must not be deleted.
service "lictor" { policy = "write" }

# For "lictor check" with this token: which node's sessions it is to try. The daemon itself does
# without.
agent "NODE" { policy = "read" }

# Effectively-once: what jobs write through LICTOR_COMMIT goes out with this token, in the finish's
# own transaction. Name the application's prefix, as narrow as may be; without it such a finish is
# refused whole and the attempt has failed. Never a prefix that contains lictor's own keys.
# key_prefix "app/" { policy = "write" }

# Only for a queue with "partitions": the right to write their number, in place of the rule above, and
# a lock for each. As of the lock above: nobody but daemons may write these. A daemon without them
# goes on with the number that there is, and says so.
# key "lictor/default/partitions" { policy = "write" }
# key_prefix "lictor/default/leader/" { policy = "write" }
