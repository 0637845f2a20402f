// The pages of the other hosts, for when this one's daemon answers no more.

import { h } from "./dom.js";

const pages = new Map(); // node -> URL; null: its page cannot be reached from here

const isLoopback = (name) => name === "localhost" || name === "[::1]" || name.startsWith("127.");

function isReachable(text, isOurHost) {
  const url = URL.canParse(text) ? new URL(text) : null; // whoever may write to Consul wrote it
  if (!url || !["http:", "https:"].includes(url.protocol) || ["0.0.0.0", "[::]"].includes(url.hostname)) return false;
  return !isLoopback(url.hostname) || (isOurHost && isLoopback(location.hostname));
}

/** Takes the members out of an answer of /v1/queues. */
export function remember(overview) {
  for (const { members } of overview.queues) {
    const own = members.find((each) => each.node === overview.node);
    for (const member of members) {
      if (member === own) continue;
      pages.set(member.node, member.admin.find((url) => isReachable(url, member.host !== null && member.host === own?.host)) ?? null);
    }
  }
}

/** Which there are; it changes with them. */
export const known = () => [...pages].flat().join();

/** "Other hosts: host-b, host-c", as links where their pages can be reached. */
export function links() {
  if (pages.size === 0) return [];
  const list = [...pages].flatMap(([node, url], i) => [i ? ", " : " Other hosts: ", url ? h("a", { href: `${url.replace(/\/$/, "")}/${location.hash}` }, node) : node]);
  return [...list, "."];
}
