// What tests do with pages.

import assert from "node:assert/strict";

import { eventually, kPatience, launch, seriousFindings, watchErrors } from "./world.mjs";

export let browser;
export async function startBrowser() {
  browser = await launch();
}
export async function stopBrowser() {
  await browser?.close();
}

export async function open(daemon, hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(kPatience);
  const page = await context.newPage();
  page.errors = watchErrors(page);
  await page.goto(`${daemon.url}/${hash}`);
  await page.waitForSelector("main[data-ready]");
  return page;
}
export const text = (page, selector = "main") => page.locator(selector).first().innerText();
export const shows = (page, expected, selector = "main") =>
  eventually(async () => (await text(page, selector)).includes(expected), `the page shows "${expected}"`);
export const lacks = (page, expected, selector = "main") =>
  eventually(async () => !(await text(page, selector)).includes(expected), `the page no longer shows "${expected}"`);
export const post = async (daemon, path) => {
  const answer = await fetch(`${daemon.url}${path}`, { method: "POST", body: "{}" });
  assert.ok(answer.ok, await answer.text());
};
export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const tile = async (page, label) => {
  const box = page.locator(".tile", { has: page.locator(".label", { hasText: new RegExp(`^${label}$`) }) });
  return (await box.locator(".value").innerText()).trim();
};

/** What is shown now is for all: nothing that axe finds serious, and no wider than a phone or a desktop, in both
 *  themes. With LICTOR_SCREENSHOTS, a folder, pictures of it go there. */
export async function looksGood(page, name) {
  const before = page.viewportSize();
  for (const [width, colorScheme] of [[380, "light"], [380, "dark"], [1200, "light"], [1200, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await eventually(() => page.evaluate((theme) => document.documentElement.dataset.theme === theme, colorScheme));
    const where = `${name} at ${width}, ${colorScheme}`;
    const folder = process.env.LICTOR_SCREENSHOTS;
    if (folder) await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png`, fullPage: !name.startsWith("manual") });
    assert.deepEqual(await seriousFindings(page), [], where);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${where} is ${over} px too wide`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(before);
}
