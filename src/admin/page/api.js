// The daemon's HTTP interface (/v1/openapi.json): requests, the token, the stream of events.

import { ask, clock } from "./dom.js";

const kTokenKey = "lictor.token";
const kTimeout = 15000;

let token = "";
try {
  token = sessionStorage.getItem(kTokenKey) ?? "";
} catch {
  // Storage can be forbidden: then the token lives as long as the page.
}
let asking = null;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

function headers() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

// One dialog for all requests that were refused meanwhile.
async function askToken(used) {
  if (used !== token) return true; // another request has got one since
  asking ??= ask({
    title: "This daemon asks for its token",
    text: `It is in the file that admin.token_file names on the daemon's host. ${token ? "The one that was given is wrong or no longer valid." : ""}`,
    fields: [{ name: "token", label: "Token", type: "password" }],
    confirm: "Use token",
  }).finally(() => (asking = null));
  const given = await asking;
  if (!given?.token) return false;
  token = given.token.trim();
  try {
    sessionStorage.setItem(kTokenKey, token);
  } catch {
    // see above
  }
  return true;
}

async function send(method, path, { body, signal, quiet } = {}) {
  for (;;) {
    const used = token;
    const limit = AbortSignal.timeout(kTimeout);
    let response;
    try {
      response = await fetch(path, {
        method,
        body,
        headers: headers(),
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "the daemon does not answer");
    }
    const date = Date.parse(response.headers.get("Date")); // in whole seconds
    if (Math.abs(date - Date.now()) > 2000) clock.ahead = date - Date.now();
    else clock.ahead = 0;
    if (response.status === 401 && !quiet && (await askToken(used))) continue;
    if (response.ok) return response;
    const text = await response.text();
    let message = text.trim();
    try {
      message = JSON.parse(text).error ?? message;
    } catch {
      // not JSON
    }
    throw new ApiError(response.status, message || `the daemon answered ${response.status}`);
  }
}

export function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

export async function get(path, parameters = {}, options = {}) {
  return (await send("GET", path + query(parameters), options)).json();
}

export async function getText(path, parameters = {}, options = {}) {
  return (await send("GET", path + query(parameters), options)).text();
}

export async function post(path, parameters = {}, body = undefined) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  return (await send("POST", path + query(parameters), { body: text })).json();
}

export async function put(path, parameters, text) {
  return (await send("PUT", path + query(parameters), { body: text })).json();
}

export async function del(path, parameters = {}) {
  return (await send("DELETE", path + query(parameters))).json();
}

/** An id in a path; it may hold slashes. */
export function idPath(id) {
  return encodeURIComponent(id);
}

/**
 * Follows the events of a queue until `signal` aborts; reconnects by itself. `onEvent(event)`;
 * `onState("live" | "lost")`. By fetch and not EventSource, which cannot send a token.
 */
export async function follow(queue, { onEvent, onState, signal }) {
  let last = "";
  let pause = 500;
  while (!signal.aborted) {
    try {
      const response = await fetch(`/v1/events${query({ queue })}`, {
        headers: { ...headers(), ...(last ? { "Last-Event-ID": last } : {}) },
        signal,
      });
      if (!response.ok) throw new ApiError(response.status, "");
      onState("live");
      pause = 500;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        // A comment comes every 15 s; without one the connection is dead.
        const { done, value } = await withLimit(reader.read(), 40000);
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) {
          const fields = Object.fromEntries(
            part.split("\n").filter((line) => line && !line.startsWith(":")).map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
          );
          if (fields.id) last = fields.id;
          if (fields.event && fields.data) onEvent({ ...JSON.parse(fields.data), event: fields.event });
        }
      }
    } catch {
      // below
    }
    if (signal.aborted) return;
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5000);
  }
}

function withLimit(promise, ms) {
  let timer;
  const limit = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("silent")), ms)));
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
