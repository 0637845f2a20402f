# What a reader may do, for the default layout lictor/default/: look at everything, change nothing.
# For "lictor list", "show", "why", "members", "check" and for dashboards.
#
#   consul acl policy create -name lictor-reader -rules @consul/policy-reader.hcl
#
# Mind that tasks are read with their parameters: what is secret does not belong into a task.
# Another root, queue or layout: replace the prefix. It ends in "/", or it would match neighbours.
# "list" contains "read", and is the same but for clusters with acl.enable_key_list_policy: there a
# listing with "read" alone is answered 403.
key_prefix "lictor/default/" { policy = "list" }

# "lictor leader": where the session that holds the lock lives, its TTL and lock-delay. Without it
# Consul answers 200 with an empty list, which looks like "this session is gone".
session_prefix "" { policy = "read" }

# For dashboards of your own that show the daemons in Consul's catalog, with their health; no command
# of lictor reads it. Entries whose node may not be read are left out of the answer.
# service "lictor" { policy = "read" }
# node_prefix "" { policy = "read" }
