# Server 3 of 3: the HTTP API on http://127.0.0.1:8530.

node_name = "server-3"
ports {
  http     = 8530
  server   = 8330
  serf_lan = 8331
}
