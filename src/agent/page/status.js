// SPDX-License-Identifier: Apache-2.0
// Reads /metrics every second and shows it, with what has grown since the reading before. It writes texts, never HTML:
// names of clients come from outside.
"use strict";

const EVERY_MS = 1000;

/** Prometheus' text: [{name, labels: {...}, value}]. */
function parse(text) {
  const samples = [];
  for (const line of text.split("\n")) {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) continue; // comments
    const labels = {};
    for (const [, name, value] of (found[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g))
      labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    samples.push({ name: found[1], labels, value: found[3] === "+Inf" ? Infinity : Number(found[3]) });
  }
  return samples;
}

function grouped(number) {
  return Math.round(number).toLocaleString("en-US");
}

function inBytes(number) {
  let unit = 0;
  while (number >= 1024 && unit < 4) (number /= 1024), ++unit;
  return `${unit && number < 100 ? number.toFixed(1) : Math.round(number)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

function duration(seconds) {
  if (!isFinite(seconds)) return "more than 10 s";
  for (const [unit, factor] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (seconds >= factor * 0.9999) return `${Number((seconds / factor).toPrecision(3))} ${unit}`;
  return `${Math.round(seconds * 1e9)} ns`;
}

/** Replaces the rows of a table. */
function rows(id, lines) {
  const body = document.querySelector(`#${id} tbody`);
  body.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  }));
}

/** The least bound of a histogram within which `share` of its samples lie; undefined: it has none. */
function within(samples, name, share) {
  const buckets = samples.filter((s) => s.name === `${name}_bucket`)
    .map((s) => [s.labels.le === "+Inf" ? Infinity : Number(s.labels.le), s.value]).sort((a, b) => a[0] - b[0]);
  const count = buckets.length ? buckets[buckets.length - 1][1] : 0;
  return count ? buckets.find(([, value]) => value >= share * count)[0] : undefined;
}

const key = (s) => s.name + JSON.stringify(s.labels);
let before = null; // {at, values}

function show(text, at) {
  const samples = parse(text);
  const values = new Map(samples.map((s) => [key(s), s.value]));
  const all = (name) => samples.filter((s) => s.name === name);
  const one = (name) => (all(name)[0] || { value: 0 }).value;
  const rate = (s, say) => {
    const old = before && before.values.get(key(s));
    return old === undefined || old === null || s.value < old ? "-" : say(((s.value - old) * 1000) / (at - before.at));
  };
  const counters = (lines) => lines.map(([label, name, say]) => {
    const sample = all(name)[0] || { name, labels: {}, value: 0 };
    return [label, rate(sample, say), say(sample.value)];
  });

  const used = one("wherry_agent_used_bytes"), budget = one("wherry_agent_budget_bytes");
  Object.assign(document.getElementById("used"), { max: budget || 1, value: used });
  document.getElementById("memory").textContent = `${inBytes(used)} of ${inBytes(budget)}`;
  const moved = new Map(all("wherry_session_bytes_total").map((s) => [s.labels.session, s]));
  rows("clients", all("wherry_session_info").map(({ labels }) => {
    const bytes = moved.get(labels.session) || { name: "", labels: {}, value: 0 };
    return [labels.name, labels.pid, labels.transports, inBytes(bytes.value), rate(bytes, inBytes)];
  }));
  rows("offloads", counters([
    ["offloads", "wherry_move_offloads_total", grouped], ["bytes", "wherry_move_bytes_total", inBytes],
    ["failed", "wherry_move_failed_total", grouped], ["waited for room", "wherry_move_busy_total", grouped],
    ["files", "wherry_sink_files_total", grouped], ["frames without a file", "wherry_sink_errors_total", grouped]]));
  const half = within(samples, "wherry_move_transfer_seconds", 0.5);
  document.getElementById("times").textContent = half === undefined ? "No transfer yet." :
    `Since the agent started, half of the transfers took at most ${duration(half)}, and 99 of 100 at most ` +
    `${duration(within(samples, "wherry_move_transfer_seconds", 0.99))}.`;
  rows("messages", counters([
    ["messages", "wherry_route_messages_total", grouped], ["bytes", "wherry_route_bytes_total", inBytes],
    ["times that the next hop had no room", "wherry_route_blocked_total", grouped]]));
  rows("services", all("wherry_service_healthy").map((s) => [s.labels.service, s.value ? "yes" : "no: see the log"]));
  for (const cell of document.querySelectorAll("#services td:last-child"))
    cell.classList.toggle("wrong", cell.textContent !== "yes");
  before = { at, values };
}

function state(text, wrong) {
  const line = document.getElementById("state");
  line.textContent = text;
  line.classList.toggle("wrong", wrong);
}

async function again() {
  try {
    // Not "metrics": if this page's address carries a password, fetch() refuses addresses that are relative to it.
    const answer = await fetch(`${location.origin}/metrics`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status === 401 ? "the token is not this agent's: load the page again" : await answer.text());
    show(await answer.text(), performance.now());
    state(`read at ${new Date().toLocaleTimeString("en-GB")}`, false);
  } catch (error) {
    before = null;
    state(`no numbers: ${error.message}`, true);
  }
  setTimeout(again, EVERY_MS);
}

again();
