# Server 2 of 3: everything on 127.0.0.2, the HTTP API on http://127.0.0.2:8500.

node_name   = "server-2"
bind_addr   = "127.0.0.2"
client_addr = "127.0.0.2"
