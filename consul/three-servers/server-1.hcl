# Server 1 of 3: the HTTP API on http://127.0.0.1:8510.

node_name = "server-1"
ports {
  http     = 8510
  server   = 8310
  serf_lan = 8311
}
