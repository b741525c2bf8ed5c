// Live requests: the socket says that requests have ended, and the newer rows are then read with
// the page's own filters. The page works without this file.
"use strict";

const live = document.getElementById("live");
const list = document.getElementById("requests");
const state = document.getElementById("live-state");
const news = document.getElementById("live-news");
const pause = document.getElementById("live-pause");
const MOST_ROWS = 200;
const LONGEST_WAIT = 30_000;
const FRESH = 4_000;
const BETWEEN_NEWS = 5_000;

let after = live.dataset.after;
let socket = null;
let paused = false;
let ended = false;
let waits = 0;
let timer = 0;
let reading = false;
let unread = false;
let arrived = 0;
let newsTimer = 0;

function show(kind, text) {
  state.className = `state ${kind}`;
  if (state.textContent !== text) state.textContent = text;
}

function connect() {
  clearTimeout(timer);
  if (paused || ended || socket) return;
  const address = new URL(live.dataset.socket, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const opened = new WebSocket(address);
  socket = opened;
  opened.addEventListener("open", () => {
    waits = 0;
    show("good", "Live");
  });
  opened.addEventListener("message", read);
  opened.addEventListener("close", () => {
    if (socket !== opened) return;
    socket = null;
    if (!paused && !ended) retry();
  });
}

// Tries again after 1, 2, 4 ... 30 seconds, some of it by chance, so that browsers come back one by one.
function retry() {
  const wait = Math.min(LONGEST_WAIT, 1000 * 2 ** waits) * (0.75 + Math.random() / 2);
  waits += 1;
  show("warn", "Disconnected, trying again");
  clearTimeout(timer);
  timer = setTimeout(async () => {
    // Tells whether the session has ended, which a refused socket does not.
    await read();
    connect();
  }, wait);
}

function end(text) {
  ended = true;
  socket?.close();
  show("bad", text);
  pause.hidden = true;
}

// One reading at a time; what ends meanwhile is read by the next.
async function read() {
  unread = true;
  if (reading || document.hidden) return;
  reading = true;
  try {
    while (unread && !paused && !ended) {
      unread = false;
      await readOnce();
    }
  } catch {
    // The network: the socket closes too, or the next message reads again.
  } finally {
    reading = false;
  }
}

async function readOnce() {
  const address = new URL(live.dataset.newer, location.href);
  const rows = list.querySelectorAll("[data-row]").length;
  // Without "after" the newest rows come, with a link to the older ones that follow them.
  if (rows && rows < MOST_ROWS) address.searchParams.set("after", after);
  const answer = await fetch(address);
  if (answer.redirected) return end("Your session has ended. Reload the page and log in again");
  if (answer.status === 403 || answer.status === 404) return end("You can no longer see these requests. Reload the page");
  if (!answer.ok || paused) return undefined;
  const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("newer");
  after = found.dataset.after;
  return "whole" in found.dataset ? replace(found) : insert(found);
}

function replace(found) {
  const known = names();
  const fresh = [...found.querySelectorAll("[data-row]")].filter((row) => !known.has(row.dataset.row));
  if (!fresh.length) return;
  list.replaceChildren(...found.children);
  fresh.forEach(mark);
}

// Each row goes to its place in the order, which is that of its time; a row that is there stays.
function insert(found) {
  const body = list.querySelector("tbody");
  const known = names();
  for (const row of found.querySelectorAll("[data-row]")) {
    if (known.has(row.dataset.row)) continue;
    const older = [...body.rows].find((each) => each.dataset.row < row.dataset.row);
    body.insertBefore(row, older ?? null);
    mark(row);
  }
}

function names() {
  return new Set([...list.querySelectorAll("[data-row]")].map((each) => each.dataset.row));
}

function mark(row) {
  row.classList.add("fresh");
  setTimeout(() => row.classList.remove("fresh"), FRESH);
  arrived += 1;
  newsTimer ||= setTimeout(tell, BETWEEN_NEWS);
}

// For screen readers, which a line for each row would drown.
function tell() {
  news.textContent = arrived === 1 ? "1 new request" : `${arrived} new requests`;
  arrived = 0;
  newsTimer = 0;
}

pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Resume" : "Pause";
  if (paused) {
    clearTimeout(timer);
    socket?.close();
    socket = null;
    show("", "Paused");
  } else {
    waits = 0;
    show("", "Connecting");
    connect();
  }
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && unread) read(); });

live.hidden = false;
connect();
