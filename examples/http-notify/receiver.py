#!/usr/bin/env python3
"""Receives tasks by HTTP: what a web service does with an http executor of lictor's.

    receiver.py [PORT]      listens on 127.0.0.1:PORT, 9000 by default; 0 picks a free one
"""
import http.server
import json
import sys
from urllib.parse import unquote

tokens = {}  # the highest fencing token seen of each task; a real service keeps them with its data


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        # Headers carry bytes that they cannot hold as %XX.
        task_id = unquote(self.headers["Lictor-Task-Id"])
        token = int(self.headers["Lictor-Fencing-Token"])
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        parameters = task.get("taskPara") or {}

        if token < tokens.get(task_id, 0):
            return self.answer(409, {"error": "a later attempt has been here"})  # for good
        tokens[task_id] = token
        if "to" not in parameters:
            return self.answer(422, {"error": "taskPara.to is missing"})  # a dead letter at once
        if parameters.get("busy") and self.headers["Lictor-Attempt"] == "1":
            return self.answer(503, {"error": "busy"}, {"Retry-After": "1"})  # tried again

        print(f"notified {parameters['to']} (task {task_id}, attempt {self.headers['Lictor-Attempt']})",
              flush=True)
        self.answer(200, {"notified": parameters["to"]})  # done; the body is the result

    def answer(self, status, body, headers=None):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)),
                            **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 9000),
                                         Receiver)
print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    pass
