#!/usr/bin/env node
// Makes tablespaces, files of a given size, as ../create-tablespace does for each by a process.

import { mkdirSync } from "node:fs";
import { open, readFile, rename, stat } from "node:fs/promises";
import { Permanent, serve } from "./lictor_worker.mjs";

const folder = process.argv[2];

async function create(run) {
  const para = run.task.taskPara ?? {};
  const name = String(para.instanceId ?? "");
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Permanent(`taskPara.instanceId: expected letters, digits, "_" or "-", got "${name}"`);
  }
  const [init, most] = [Number(para.initSize), Number(para.maxSize)];
  if (!Number.isInteger(init) || !(init >= 1 && init <= most)) {
    throw new Permanent(`taskPara: expected initSize of 1 kilobyte or more, and maxSize of at least that`);
  }
  const path = `${folder}/${name}.db`;
  const aside = `${folder}/.${name}.db.new`;
  const header = `tablespace ${name}: init ${init} kB, max ${most} kB\n`;
  const there = await readFile(path, "latin1").catch(() => null);
  if (there !== null) {
    // Made by an attempt before this one.
    if (!there.startsWith(header)) throw new Permanent(`${path} is another tablespace`);
    console.log(`${path} is there already`);
    return { instanceId: name, created: false, bytes: (await stat(path)).size };
  }
  const file = await open(aside, "w"); // aside first: there is a whole tablespace or none
  try {
    await file.write(header);
    await file.truncate(init * 1024);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, path);
  console.log(`made ${path}: ${init * 1024} bytes`);
  return { instanceId: name, created: true, bytes: init * 1024 };
}

mkdirSync(folder, { recursive: true });
await serve({ CreateTableSpace: create });
