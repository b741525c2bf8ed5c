// The page of voices: plays samples, speaks a text over HTTP or a WebSocket, and checks what is typed.

import { History, fileName } from "./voices-history.js";
import { Queue, StreamPlayer, decoded, wavOf } from "./voices-sound.js";

const root = document.getElementById("voices");
const element = (id) => document.getElementById(id);
const token = document.querySelector("#speak [name=csrfmiddlewaretoken]")?.value;
const rate = Number(root?.dataset.rate);
const TYPES = { wav: "audio/wav", mp3: "audio/mpeg", opus: "audio/ogg", flac: "audio/flac", pcm: "audio/pcm" };
const PROBLEMS = { speed: "speed-problem", instructions: "instructions-problem", response_format: "format-problem" };
const samples = new Map();
let listening = null;
let running = null;
let played = null;
let streaming = null;
let checking = null;
let history = null;

function lineOf(id) {
  return document.querySelector(`[data-voice="${CSS.escape(id)}"]`);
}

// The request that the form describes.
function request() {
  const line = lineOf(element("voice").value);
  const streamed = element("transport").value === "stream";
  const body = {
    voice: line.dataset.voice,
    input: element("text").value,
    response_format: streamed ? "pcm" : element("format").value,
  };
  const speed = element("speed").value;
  if ("speed" in line.dataset && speed !== "" && Number(speed) !== 1) body.speed = Number(speed);
  const instructions = element("instructions").value.trim();
  if ("instructions" in line.dataset && instructions) body.instructions = instructions;
  return body;
}

function post(address, body, signal) {
  return fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrftoken": token },
    body: JSON.stringify(body),
    signal,
  });
}

async function problemOf(answer) {
  try {
    return new Error((await answer.json()).error.message);
  } catch {
    return new Error(`The gateway answered with status ${answer.status}. Reload the page and try again.`);
  }
}

const figure = (number) => number.toLocaleString("en-US");
const milliseconds = (time) => (time < 1000 ? `${Math.round(time)} ms` : `${(time / 1000).toFixed(2)} s`);

// -- what is typed ---------------------------------------------------------------------------

function followForm() {
  const line = lineOf(element("voice").value);
  element("speed-field").hidden = !("speed" in line.dataset);
  element("instructions-field").hidden = !("instructions" in line.dataset);
  const transport = element("transport").value;
  element("format").disabled = transport === "stream";
  for (const option of element("format").options) {
    // Over HTTP these samples are always streamed, so they are that choice.
    option.disabled = option.value === "pcm" && transport === "file";
    if (option.selected && option.disabled) element("format").value = "wav";
  }
  for (const each of document.querySelectorAll("[data-voice]")) each.classList.toggle("chosen", each === line);
  checkSoon();
}

function showQuota(today) {
  element("used").textContent = figure(today.used);
  element("quota").dataset.used = today.used;
  const meter = element("quota-meter");
  if (meter) meter.value = today.used;
}

function showCheck(found) {
  const left = found.today.limit === null ? Infinity : found.today.limit - found.today.used;
  const counted = found.problem ? "" : `Counts as ${figure(found.characters)} characters`;
  element("count").textContent = found.characters > left ? `${counted}; ${figure(Math.max(0, left))} are left today` : counted;
  const place = found.problem ? PROBLEMS[found.problem.param] ?? "text-problem" : null;
  for (const each of [...Object.values(PROBLEMS), "text-problem"]) {
    element(each).textContent = each === place ? found.problem.message : "";
    element(each.replace("-problem", "")).setAttribute("aria-invalid", String(each === place));
  }
  for (const name of ["curl", "python", "javascript"]) {
    const code = found.snippets[name];
    element(`${name}-code`).textContent = code ?? "";
    if (found.problem) continue;
    // curl has no WebSocket session to offer.
    element(`code-${name}`).disabled = code === undefined;
    document.querySelector(`label[for=code-${name}]`).hidden = code === undefined;
    if (code === undefined && element(`code-${name}`).checked) element("code-python").checked = true;
  }
}

async function check() {
  checking?.abort();
  checking = new AbortController();
  const body = { ...request(), by_socket: element("transport").value === "socket" };
  try {
    const answer = await post(root.dataset.check, body, checking.signal);
    if (!answer.ok || !answer.headers.get("content-type").startsWith("application/json")) return;
    const found = await answer.json();
    showCheck(found);
    showQuota(found.today);
    root.dataset.checked = String(Number(root.dataset.checked ?? 0) + 1);
  } catch (error) {
    if (error.name !== "AbortError") element("count").textContent = "";
  }
}

let timer = 0;
function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(check, 300);
}

function insert(tag) {
  const text = element("text");
  const { selectionStart: start, value } = text;
  const before = start > 0 && !/\s/.test(value[start - 1]) ? " " : "";
  const after = start < value.length && !/\s/.test(value[start]) ? " " : "";
  text.setRangeText(before + tag + after, start, text.selectionEnd, "end");
  text.focus();
  checkSoon();
}

// -- samples ---------------------------------------------------------------------------------

function showListening(line, state) {
  for (const each of document.querySelectorAll("[data-listen]")) {
    const mine = line !== null && line.contains(each);
    each.dataset.state = mine ? state : "";
    each.firstElementChild.textContent = mine && state ? "■" : "▶";
    each.setAttribute("aria-label", `${mine && state ? "Stop" : "Listen to"} ${each.parentElement.dataset.name}`);
  }
}

async function fetchSample(line, signal) {
  const { voice, sample } = line.dataset;
  const answer = await post(root.dataset.speak, { voice, input: sample, response_format: "wav" }, signal);
  if (!answer.ok) throw await problemOf(answer);
  const address = URL.createObjectURL(await answer.blob());
  samples.set(voice, address);
  receiptOf(answer.headers.get("x-request-id")).then((receipt) => { if (receipt) showQuota(receipt.today); });
  return address;
}

// Stops every sound of the page.
function silence() {
  listening?.abort.abort();
  listening = null;
  element("sampler").pause();
  showListening(null, "");
  history?.stop();
  played?.halt();
  element("player").pause();
}

async function listen(line) {
  const sampler = element("sampler");
  const was = listening;
  silence();
  if (was?.line === line) return;
  const mine = { line, abort: new AbortController() };
  listening = mine;
  element("voices-problem").textContent = "";
  showListening(line, "waits");
  try {
    const address = samples.get(line.dataset.voice) ?? (await fetchSample(line, mine.abort.signal));
    if (listening !== mine) return;
    sampler.src = address;
    await sampler.play();
    showListening(line, "plays");
  } catch (error) {
    if (error.name === "AbortError") return;
    element("voices-problem").textContent = error.message;
    if (listening === mine) {
      listening = null;
      showListening(null, "");
    }
  }
}

// -- speaking --------------------------------------------------------------------------------

async function overHttp(job, body) {
  const streamed = element("transport").value === "stream";
  const answer = await post(root.dataset.speak, body, job.abort.signal);
  job.id = answer.headers.get("x-request-id");
  if (!answer.ok) {
    // A refused request is not metered, so it has no receipt.
    if (answer.status < 500) job.id = null;
    throw await problemOf(answer);
  }
  if (streamed) played = new StreamPlayer(rate);
  const player = played;
  const parts = [];
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      heard(job);
      parts.push(value);
      if (streamed) player.add(value);
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The sound broke off before its end. The request's page says why.");
  } finally {
    // What a stopped stream had sent can still be played.
    if (streamed && parts.length) offer(job, wavOf(parts, rate), "wav");
  }
  job.ended = performance.now();
  if (streamed) {
    playOn(player);
    return;
  }
  offer(job, new Blob(parts, { type: TYPES[body.response_format] }), body.response_format);
  await element("player").play().catch(() => {});
}

// A stream arrives faster than it plays, so it can be stopped after its end.
async function playOn(player) {
  streaming = player;
  await player.finished();
  player.stop();
  if (streaming === player) streaming = null;
  switchButtons();
}

function offer(job, sound, ending) {
  job.sounds = [sound];
  job.ending = ending;
  const player = element("player");
  if (player.src) URL.revokeObjectURL(player.src);
  player.src = URL.createObjectURL(sound);
  const download = element("download");
  download.href = player.src;
  download.download = fileName(job.name, job.text, ending);
  element("sound").hidden = false;
}

function pieces(text) {
  const points = [...text];
  const longest = Number(root.dataset.piece);
  const found = [];
  for (let at = 0; at < points.length; at += longest) found.push(points.slice(at, at + longest).join(""));
  return found;
}

function overSocket(job, { input, ...start }) {
  const address = new URL(root.dataset.stream, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  element("sentences").hidden = false;
  played = new Queue(element("player"), showTurn);
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    const send = (message) => socket.send(JSON.stringify(message));
    let problem = new Error("The connection was refused or lost. Reload the page and try again.");
    let frames = Promise.resolve();
    socket.addEventListener("open", () => send({ type: "start", ...start }));
    socket.addEventListener("message", ({ data }) => {
      if (typeof data !== "string") {
        heard(job);
        const arrived = performance.now() - job.started;
        frames = frames.then(() => addSentence(job, data, start.response_format, arrived));
        return;
      }
      const message = JSON.parse(data);
      if (message.type === "ready") {
        job.id = message.request_id;
        for (const text of pieces(input)) send({ type: "text", text });
        send({ type: "done" });
      } else if (message.type === "error") {
        problem = new Error(message.error.message);
        // The session may go on: this sentence alone could not be read.
        element("speak-problem").textContent = problem.message;
      } else if (message.type === "session.done") {
        problem = null;
        job.ended = performance.now();
      }
    });
    socket.addEventListener("close", () => frames.then(() => (problem ? reject(problem) : resolve())));
    job.abort.signal.addEventListener("abort", () => {
      // The session answers to it with its end, so that the receipt is there.
      if (socket.readyState === WebSocket.OPEN) send({ type: "cancel" });
      else socket.close();
    });
  });
}

async function addSentence(job, bytes, format, arrived) {
  const sound = format === "pcm" ? wavOf([new Uint8Array(bytes)], rate) : new Blob([bytes], { type: TYPES[format] });
  job.sounds.push(sound);
  job.ending = format === "pcm" ? "wav" : format;
  const line = document.createElement("li");
  const number = element("sentences").children.length;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "round";
  button.setAttribute("aria-label", `Play sentence ${number + 1}`);
  button.textContent = "▶";
  const queue = played;
  button.addEventListener("click", () => queue.play(number));
  const text = document.createElement("span");
  text.textContent = `Sentence ${number + 1}`;
  const facts = document.createElement("span");
  facts.className = "hint";
  facts.textContent = `after ${milliseconds(arrived)}`;
  line.append(button, text, facts);
  element("sentences").append(line);
  queue.add(URL.createObjectURL(sound));
  try {
    const { duration } = await decoded(await sound.arrayBuffer(), rate);
    facts.textContent = `${duration.toFixed(1)} s of sound, after ${milliseconds(arrived)}`;
  } catch {
    // A format that only the audio element reads: its length stays unknown here.
  }
}

function showTurn(index) {
  [...element("sentences").children].forEach((line, at) => {
    if (at === index) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  });
}

function heard(job) {
  if (job.first !== null) return;
  job.first = performance.now() - job.started;
  element("first-sound").textContent = milliseconds(job.first);
  element("progress").textContent = "Speaking …";
}

function reset() {
  silence();
  played?.stop();
  played = null;
  element("player").removeAttribute("src");
  element("player").load();
  element("sentences").replaceChildren();
  element("sentences").hidden = true;
  element("speak-problem").textContent = "";
  for (const id of ["first-sound", "whole", "audio", "factor", "characters"]) element(id).textContent = "–";
  for (const id of ["sound", "request"]) element(id).hidden = true;
  element("result").hidden = false;
}

async function speak(event) {
  event.preventDefault();
  if (running) return;
  const body = request();
  const { name } = lineOf(body.voice).dataset;
  const job = {
    abort: new AbortController(), started: performance.now(), first: null, ended: null, id: null,
    name, text: body.input, sounds: [], ending: "",
  };
  running = job;
  reset();
  switchButtons();
  element("progress").textContent = "Waiting for the first sound …";
  try {
    await (element("transport").value === "socket" ? overSocket : overHttp)(job, body);
  } catch (error) {
    if (error.name !== "AbortError") element("speak-problem").textContent = error.message;
  } finally {
    running = null;
    switchButtons();
    element("progress").textContent = job.abort.signal.aborted ? "Stopped" : "";
    element("result").hidden = job.first === null;
    remember(job, body.voice);
    if (job.id) showReceipt(job, await receiptOf(job.id, job.abort.signal.aborted ? 10 : 4));
    checkSoon();
  }
}

// A browser that keeps nothing, such as one in a private window, has no history.
function remember({ name, text, sounds, ending }, voice) {
  if (sounds.length) history?.add({ at: Date.now(), voice, name, text, sounds, ending }).catch(() => {});
}

// A stopped request is metered too, a moment later.
async function receiptOf(id, tries = 4) {
  for (let left = tries; left > 0; left -= 1) {
    const answer = await fetch(root.dataset.receipts.replace("ID", encodeURIComponent(id)));
    if (answer.ok && answer.headers.get("content-type").startsWith("application/json")) return answer.json();
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
  return null;
}

function showReceipt(job, receipt) {
  if (!receipt) return;
  element("result").hidden = false;
  showQuota(receipt.today);
  element("characters").textContent = figure(receipt.characters);
  element("audio").textContent = `${(receipt.audio_ms / 1000).toFixed(2)} s`;
  element("request").href = receipt.link;
  element("request").hidden = false;
  if (job.ended === null) return;
  const whole = job.ended - job.started;
  element("whole").textContent = milliseconds(whole);
  if (receipt.audio_ms) element("factor").textContent = (whole / receipt.audio_ms).toFixed(3);
}

function switchButtons() {
  element("say").disabled = running !== null;
  element("stop").hidden = running === null && streaming === null;
}

function stop() {
  running?.abort.abort();
  played?.halt();
}

function useAgain({ voice, text }) {
  element("text").value = text;
  // The voice may be gone meanwhile.
  if (lineOf(voice)) element("voice").value = voice;
  followForm();
  element("text").focus();
}

if (root) {
  history = new History({
    section: element("history"), sampler: element("sampler"), owner: root.dataset.owner, rate, silence, use: useAgain,
  });
  history.show().catch(() => {});
  for (const each of document.querySelectorAll("[data-listen], [data-use]")) each.hidden = false;
  for (const line of document.querySelectorAll("[data-voice]")) {
    line.querySelector("[data-listen]").addEventListener("click", () => listen(line));
    line.querySelector("[data-use]").addEventListener("click", () => {
      const text = element("text");
      const spoken = [...document.querySelectorAll("[data-voice]")].some((each) => each.dataset.sample === text.value);
      // A text of one's own stays; a sample changes with the language.
      if (spoken || !text.value.trim()) text.value = line.dataset.sample;
      element("voice").value = line.dataset.voice;
      followForm();
      element("text").focus();
    });
  }
  element("sampler").addEventListener("ended", () => {
    listening = null;
    showListening(null, "");
  });
  for (const button of document.querySelectorAll("[data-inserts]")) {
    button.addEventListener("click", () => insert(button.dataset.inserts));
  }
  element("speak").addEventListener("submit", speak);
  element("speak").addEventListener("input", followForm);
  element("stop").addEventListener("click", stop);
  element("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element("speak").requestSubmit();
  });
  followForm();
}
