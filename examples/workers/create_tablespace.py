#!/usr/bin/env python3
"""Makes tablespaces, files of a given size, as ../create-tablespace does for each by a process."""

import os, re, sys

import lictor_worker

FOLDER = sys.argv[1]


@lictor_worker.job("CreateTableSpace")
def create(run):
    para = run.task["taskPara"]
    name = str(para.get("instanceId", ""))
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise lictor_worker.Permanent(f'taskPara.instanceId: expected letters, digits, "_" or "-", got "{name}"')
    try:
        init, most = int(para["initSize"]), int(para["maxSize"])
    except (KeyError, ValueError) as error:
        raise lictor_worker.Permanent(f"taskPara: expected initSize and maxSize in kilobytes: {error}") from None
    if not 1 <= init <= most:
        raise lictor_worker.Permanent(f"taskPara.maxSize: expected initSize ({init}) or more, got {most}")

    path, aside = f"{FOLDER}/{name}.db", f"{FOLDER}/.{name}.db.new"
    header = f"tablespace {name}: init {init} kB, max {most} kB\n".encode()
    if os.path.exists(path):  # made by an attempt before this one
        with open(path, "rb") as file:
            if file.read(len(header)) != header:
                raise lictor_worker.Permanent(f"{path} is another tablespace")
        print(f"{path} is there already")
        return {"instanceId": name, "created": False, "bytes": os.path.getsize(path)}
    with open(aside, "wb") as file:  # aside first: there is a whole tablespace or none
        file.write(header)
        os.posix_fallocate(file.fileno(), 0, init * 1024)
        os.fsync(file.fileno())
    os.rename(aside, path)
    print(f"made {path}: {os.path.getsize(path)} bytes")
    return {"instanceId": name, "created": True, "bytes": os.path.getsize(path)}


os.makedirs(FOLDER, exist_ok=True)
lictor_worker.serve()
