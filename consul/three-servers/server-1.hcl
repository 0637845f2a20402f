# Server 1 of 3: everything on 127.0.0.1, the HTTP API on http://127.0.0.1:8500.

node_name   = "server-1"
bind_addr   = "127.0.0.1"
client_addr = "127.0.0.1"
ui          = true
