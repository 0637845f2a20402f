// Small pictures of the last hour, as SVG. A value a minute; null: none.

import { count, duration, h } from "./dom.js";

let width = 600; // a narrow screen gets a narrow picture, so that its text stays readable
const kHeight = 120;
const kLeft = 52;
const kBottom = 18;
const s = (tag, attributes, ...children) => h(tag, { svg: true, ...attributes }, ...children);

/** 0, and a round number at or above `value`. */
function roundUp(value) {
  if (value <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((each) => each * size).find((each) => each >= value);
}

function frame(title, max, format, minutes, ...content) {
  const y = (share) => 6 + (kHeight - kBottom - 6) * (1 - share);
  const lines = [0, 0.5, 1].map((share) => [
    s("line", { x1: kLeft, x2: width, y1: y(share), y2: y(share), class: "grid" }),
    s("text", { x: kLeft - 6, y: y(share) + 4, class: "tick end" }, format(max * share)),
  ]);
  const times = [0, 0.5, 1].map((share) =>
    s(
      "text",
      { x: kLeft + (width - kLeft) * share, y: kHeight - 3, class: `tick ${share === 0 ? "" : share === 1 ? "end" : "middle"}` },
      share === 1 ? "now" : `${Math.round(minutes * (1 - share))} min ago`,
    ),
  );
  return s("svg", { viewBox: `0 0 ${width} ${kHeight}`, class: "chart", role: "img", "aria-label": title }, lines, times, ...content);
}

/** Bars that stand on each other. `series`: [{ name, values, class }], the lowest first. */
export function bars(title, series) {
  width = innerWidth < 720 ? 340 : 600;
  const minutes = series[0].values.length;
  const sums = series[0].values.map((_, i) => series.reduce((sum, each) => sum + each.values[i], 0));
  const max = roundUp(Math.max(...sums));
  const step = (width - kLeft) / minutes;
  const scale = (kHeight - kBottom - 6) / max;
  const content = sums.map((sum, i) => {
    let top = kHeight - kBottom;
    const text = series.map((each) => `${each.name} ${count(each.values[i])}`).join(", ");
    return s(
      "g",
      {},
      s("title", {}, `${minutes - 1 - i} min ago: ${text}`),
      s("rect", { x: kLeft + i * step, y: 6, width: step, height: kHeight - kBottom - 6, class: "hit" }),
      series.map((each) => {
        const height = each.values[i] * scale;
        top -= height;
        return height > 0 ? s("rect", { x: kLeft + i * step + 1, y: top, width: Math.max(step - 2, 1), height: Math.max(height, 1), class: each.class }) : null;
      }),
    );
  });
  return picture(title, frame(title, max, (value) => count(Math.round(value)), minutes, content), series);
}

/** Lines over a logarithmic scale of milliseconds. */
export function delays(title, series) {
  width = innerWidth < 720 ? 340 : 600;
  const minutes = series[0].values.length;
  const max = Math.max(10, ...series.flatMap((each) => each.values.filter((value) => value !== null)));
  const place = (ms) => Math.log10(1 + ms) / Math.log10(1 + max);
  const step = (width - kLeft) / minutes;
  const y = (ms) => 6 + (kHeight - kBottom - 6) * (1 - place(ms));
  const content = series.map((each) => {
    let path = "";
    let last = null;
    const dots = [];
    each.values.forEach((value, i) => {
      const x = kLeft + (i + 0.5) * step;
      if (value !== null) {
        path += `${last === null ? "M" : "L"}${x.toFixed(1)} ${y(value).toFixed(1)}`;
        dots.push(s("circle", { cx: x, cy: y(value), r: 2.4, class: each.class }, s("title", {}, `${minutes - 1 - i} min ago: ${each.name} ${duration(value)} or less`)));
      }
      last = value;
    });
    return [s("path", { d: path, class: `line ${each.class}` }), dots];
  });
  return picture(title, frame(title, 1, (share) => duration((1 + max) ** share - 1), minutes, content), series);
}

function picture(title, chart, series) {
  const legend = series.map((each) => h("span", { class: `key ${each.class}` }, each.name));
  return h("figure", {}, h("figcaption", {}, h("span", {}, title), h("span", { class: "legend" }, legend)), chart);
}
