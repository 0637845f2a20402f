// The npm client `consul`, which knows nothing of lictor, at the port that is given: of `lictor dev`,
// or of a real agent. It takes an answer for JSON by its Content-Type alone.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [port, folder] = process.argv.slice(2);
const Consul = createRequire(`${folder}/`)("consul");
const client = new Consul({ host: "127.0.0.1", port: Number(port) });
const { kv, session } = client;
const refused = (answer) => assert.ok(!answer, `taken for true: ${answer}`);  // the client's false

// Keys.
assert.equal(await kv.set("node/a", "1"), true);
assert.equal((await kv.get("node/a")).Value, "1");
assert.equal(await kv.get("node/none"), undefined);
refused(await kv.set({ key: "node/a", value: "2", cas: "0" }));
const { ModifyIndex: at } = await kv.get("node/a");
assert.equal(await kv.set({ key: "node/a", value: "2", cas: String(at) }), true);
refused(await kv.del({ key: "node/a", cas: String(at) }));
assert.deepEqual(await kv.keys("node/"), ["node/a"]);
assert.equal((await kv.get({ key: "node/", recurse: true }))[0].Value, "2");

// A blocking query is woken by a write.
const woken = kv.get({ key: "node/a", index: String((await kv.get("node/a")).ModifyIndex), wait: "5m" });
await kv.set("node/a", "3");
assert.equal((await woken).Value, "3");

// Sessions and locks.
const { ID: first } = await session.create({ name: "first", ttl: "10s", lockdelay: "0s" });
const { ID: second } = await session.create({ name: "second", lockdelay: "0s" });
assert.equal(await kv.set({ key: "node/lock", value: "held", acquire: first }), true);
refused(await kv.set({ key: "node/lock", value: "held", acquire: second }));
assert.equal(await kv.set({ key: "node/lock", value: "free", release: first }), true);
assert.equal((await session.renew(first))[0].ID, first);
await session.destroy(first);
await session.destroy(second);
await assert.rejects(session.renew(first), /not found/);

// Transactions.
const done = await client.transaction.create([{ KV: { Verb: "set", Key: "node/t", Value: "MQ==" } }]);
assert.equal(done.Results[0].KV.Key, "node/t");
await assert.rejects(client.transaction.create([{ KV: { Verb: "check-not-exists", Key: "node/t" } }]));

// What a producer does.
const task = JSON.stringify({ taskType: "Hello", taskPara: { to: "you" } });
assert.equal(await kv.set({ key: "lictor/default/tasks/of-node", value: task, cas: "0" }), true);

assert.equal(await kv.del({ key: "node/", recurse: true }), true);
assert.equal(await kv.get({ key: "node/", recurse: true }), undefined);
console.log("npm's consul: all as it should be");
