# Server 2 of 3: the HTTP API on http://127.0.0.1:8520.

node_name = "server-2"
ports {
  http     = 8520
  server   = 8320
  serf_lan = 8321
}
