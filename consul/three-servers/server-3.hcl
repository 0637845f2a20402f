# Server 3 of 3: everything on 127.0.0.3, the HTTP API on http://127.0.0.3:8500.

node_name   = "server-3"
bind_addr   = "127.0.0.3"
client_addr = "127.0.0.3"
