# What a producer may do, for the default layout lictor/default/: hand in tasks, and nothing else.
#
#   consul acl policy create -name lictor-producer -rules @consul/policy-producer.hcl
#   consul acl token create -policy-name lictor-producer
#
# Another root, queue or layout: replace the prefix. It ends in "/", or it would match neighbours.
#
# Consul knows no "create only": who may write tasks may also read, change and withdraw those of
# others. It cannot finish or claim one unseen: the daemon's writes carry the task's ModifyIndex and
# are refused where somebody else has written meanwhile. To keep producers apart, give each a prefix of its own
# below tasks/ (a task's id may hold "/"): key_prefix "lictor/default/tasks/billing/".
key_prefix "lictor/default/tasks/" { policy = "write" }

# For "lictor submit --wait", which tells a task's end by where it went: without these two rules the
# answer of Consul is 403 for a single key, and 404, "nothing there", for a listing.
# key_prefix "lictor/default/dead/" { policy = "list" }
# key_prefix "lictor/default/done/" { policy = "list" }

# For "lictor submit --ndjson" and submit_many(): many thousands are written a third faster while
# nobody leads the queue, or while it is paused, which nobody can know without these rules.
# key "lictor/default/partitions" { policy = "read" }
# key "lictor/default/leader" { policy = "read" }
# key "lictor/default/control" { policy = "read" }
