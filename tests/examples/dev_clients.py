"""Debian's python3-consul, a client library that knows nothing of lictor, at the `lictor dev` of
which the port is given."""

import json
import sys
import threading

import consul
import requests

c = consul.Consul(port=int(sys.argv[1]))


def expect(what, found, wanted):
    assert found == wanted, f"{what}: expected {wanted!r}, got {found!r}"


def value(key):
    return (c.kv.get(key)[1] or {}).get("Value")


# Keys.
expect("put", c.kv.put("py/a", "1"), True)
expect("get", value("py/a"), b"1")
expect("get of a missing key", c.kv.get("py/none")[1], None)
expect("put of bytes", c.kv.put("py/d/e", bytes(range(256)), flags=7), True)
expect("bytes", value("py/d/e"), bytes(range(256)))
index, entries = c.kv.get("py/", recurse=True)
expect("recurse", [e["Key"] for e in entries], ["py/a", "py/d/e"])
expect("flags", entries[1]["Flags"], 7)
expect("keys", c.kv.get("py/", keys=True, separator="/")[1], ["py/a", "py/d/"])
at = entries[0]["ModifyIndex"]
expect("cas", c.kv.put("py/a", "2", cas=at), True)
expect("cas of an old index", c.kv.put("py/a", "3", cas=at), False)
expect("cas of a new key that is there", c.kv.put("py/a", "3", cas=0), False)
expect("delete with cas", c.kv.delete("py/a", cas=at), False)
expect("consistent", c.kv.get("py/a", consistency="consistent")[1]["Value"], b"2")
expect("stale, with a token", c.kv.get("py/a", consistency="stale", token="any")[1]["Value"], b"2")

# Other clients go by the type of an answer: without one they take "false" for a text, and so for true.
url = f"{c.http.base_uri}/v1/kv/py/a"
for answer in (requests.put(url, data="2"), requests.put(url, params={"cas": 0}, data="3"),
               requests.get(url), requests.delete(url, params={"cas": 1})):
    expect("the type of an answer", (answer.status_code, answer.headers["Content-Type"]),
           (200, "application/json"))
expect("the type of no answer", "Content-Type" in requests.get(url + "/none").headers, False)

# A blocking query is woken by a write below its prefix, and not before.
index, _ = c.kv.get("py/", recurse=True)
woken = []
watch = threading.Thread(
    target=lambda: woken.append(consul.Consul(port=c.http.port).kv.get(
        "py/", recurse=True, index=index, wait="5m")))
watch.start()
c.kv.put("py-beside", "1")
c.kv.put("py/b", "woken")
watch.join()
assert "py/b" in [e["Key"] for e in woken[0][1]], woken
assert int(woken[0][0]) > int(index), woken
expect("the end of a wait", c.kv.get("py/", recurse=True, index=woken[0][0], wait="10ms")[0], woken[0][0])

# Sessions and locks.
first = c.session.create(name="first", ttl=10, lock_delay=0, behavior="delete")
second = c.session.create(name="second", lock_delay=0)
expect("renew", c.session.renew(first)["ID"], first)
expect("info", c.session.info(first)[1]["TTL"], "10s")
expect("list", sorted(s["Name"] for s in c.session.list()[1] if s["ID"] in (first, second)), ["first", "second"])
expect("acquire", c.kv.put("py/lock", "held", acquire=first), True)
expect("acquire of what is held", c.kv.put("py/lock", "held", acquire=second), False)
expect("the holder", c.kv.get("py/lock")[1]["Session"], first)
expect("release", c.kv.put("py/lock", "free", release=first), True)
expect("acquire of what is free", c.kv.put("py/lock", "held", acquire=second), True)
expect("destroy", c.session.destroy(second), True)
assert "Session" not in c.kv.get("py/lock")[1]
c.kv.put("py/goes", "held", acquire=first)
c.session.destroy(first)
expect("a key that goes with its session", c.kv.get("py/goes")[1], None)
try:
    c.session.renew(first)
    sys.exit("a session that is gone was renewed")
except consul.NotFound:
    pass

# Transactions.
def txn(*operations):  # which the library has not
    answer = requests.put(f"{c.http.base_uri}/v1/txn", json=[{"KV": o} for o in operations])
    return answer.status_code, answer.json()


status, done = txn({"Verb": "set", "Key": "py/t", "Value": "MQ=="}, {"Verb": "get", "Key": "py/t"})
expect("txn", (status, [r["KV"]["Key"] for r in done["Results"]]), (200, ["py/t", "py/t"]))
status, refused = txn({"Verb": "check-not-exists", "Key": "py/t"})
expect("a transaction that must fail", (status, refused["Errors"][0]["OpIndex"]), (409, 0))

def tell_agent(path):  # for which the library still has the GET of before Consul 1.0
    return requests.put(f"{c.http.base_uri}/v1/agent/{path}").status_code


# What lictor asks of the agent itself.
node = c.agent.self()["Config"]["NodeName"]
expect("register", c.agent.service.register(
    "web", service_id="web-1", address="10.0.0.1", port=80, tags=["v1"],
    check=consul.Check.ttl("10m")), True)
expect("pass", tell_agent("check/pass/service:web-1"), 200)
expect("deregister", tell_agent("service/deregister/web-1"), 200)
assert c.status.leader()

expect("delete", c.kv.delete("py/", recurse=True), True)
expect("what is left", c.kv.get("py/", recurse=True)[1], None)
print("python3-consul: all as it should be", json.dumps({"node": node}))
