# What an operator may do, for the default layout lictor/default/: all that a reader may, and pause,
# resume, step down, cancel, retry, purge dead letters, change schedules, and drain hosts.
#
#   consul acl policy create -name lictor-operator -rules @consul/policy-operator.hcl
#
# Another root, queue or layout: replace the prefixes. Each ends in "/", or it would match neighbours.

# The longest matching rule wins, so that what follows widens this one for single places.
# "list" contains "read", and is the same but for clusters with acl.enable_key_list_policy: there a
# listing with "read" alone is answered 403.
key_prefix "lictor/default/" { policy = "list" }

# pause, resume, leader --step-down
key "lictor/default/control" { policy = "write" }

# submit, cancel; retry, which moves a dead letter back to the tasks
key_prefix "lictor/default/tasks/" { policy = "write" }
key_prefix "lictor/default/dead/" { policy = "write" }

# cancel: tells those who wait for the task, and the history, by whom. Without this they cannot tell
# a cancelled task from one that is done.
key_prefix "lictor/default/done/" { policy = "write" }

# schedule add, remove, pause, resume, run
key_prefix "lictor/default/schedules/" { policy = "write" }

# drain, undrain: members/<node>/drain. Consul has no rule for such keys alone, so this also lets an
# operator change what the members say of themselves. Without it a host cannot be emptied.
key_prefix "lictor/default/members/" { policy = "write" }

# Not the leader key, on purpose: deleting it would let two daemons lead at once. To move leadership,
# use "lictor leader --step-down"; to free a lock by force, destroy its session, which starts the
# lock-delay and so waits for the old leader's jobs:  session_prefix "" { policy = "write" }

# "lictor leader", as in policy-reader.hcl.
session_prefix "" { policy = "read" }
