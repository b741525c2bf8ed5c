// The playground: sends chat requests to one model or two, and shows exactly what is sent.

import { Pane } from "./playground-messages.js";
import { FIELDS, bodyOf, written } from "./playground-request.js";
import { LinkTooLong, fragmentOf, remember, remembered, stateOf } from "./playground-state.js";
import { Answer } from "./playground-stream.js";

const root = document.getElementById("playground");
const element = (id) => document.getElementById(id);
const token = document.querySelector("#settings [name=csrfmiddlewaretoken]")?.value;
const panes = [];
let made = 0;
let checking = null;

const EXAMPLES = {
  tools: [{
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather of a city now.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  }],
  schema: {
    type: "object",
    properties: { city: { type: "string" }, country: { type: "string" } },
    required: ["city", "country"],
    additionalProperties: false,
  },
};
const PLACES = ["tools-problem", "schema-problem", "parameter-problem"];
const NOTES = { length: "Ended at the most tokens.", content_filter: "Ended by the model server's content filter." };

function fields() {
  return Object.fromEntries(FIELDS.map((name) => [name, element(name).value]));
}

function state() {
  return {
    fields: fields(),
    text: element("message").value,
    panes: panes.map(({ model, messages }) => ({ model, messages })),
  };
}

function restore(found) {
  for (const name of FIELDS) {
    element(name).value = found.fields[name];
    // What is sent is not folded away.
    if (found.fields[name]) element(name).closest("#settings details")?.setAttribute("open", "");
  }
  element("message").value = found.text;
  for (const { model, messages } of found.panes) {
    const pane = addPane();
    pane.model = model;
    pane.messages = messages;
  }
}

// The request that *Send* sends; with nothing to send, the last one that was, or an example.
function next(pane, problems = []) {
  const typed = element("message").value;
  const messages = [...pane.messages];
  let saying = "What Send sends now.";
  if (typed.trim()) {
    messages.push({ role: "user", content: typed });
  } else if (messages.length && !pane.waits) {
    if (messages.at(-1).role === "assistant") messages.pop();
    saying = "What the last answer was made from.";
  }
  if (!messages.length) {
    messages.push({ role: "user", content: "Hello!" });
    saying = "Nothing is typed yet, so that this says Hello!";
  }
  return { body: bodyOf(fields(), pane.model, messages, problems), saying };
}

function placeOf(param) {
  if (param.startsWith("tool")) return "tools-problem";
  return param.startsWith("response_format") ? "schema-problem" : "parameter-problem";
}

function showProblems(problems) {
  for (const place of PLACES) {
    const lines = problems.filter((each) => placeOf(each.param) === place);
    element(place).replaceChildren(...lines.map((each) => {
      const line = document.createElement("p");
      if (each.pointer) {
        const pointer = document.createElement("code");
        pointer.textContent = each.pointer;
        line.append(pointer, " ");
      }
      line.append(each.message);
      return line;
    }));
    const field = element(place.replace("-problem", ""));
    if (field) field.setAttribute("aria-invalid", String(lines.length > 0));
  }
}

async function checked(body, signal) {
  const answer = await fetch(root.dataset.check, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrftoken": token },
    body: written(body),
    signal,
  });
  if (!answer.ok || !answer.headers.get("content-type").startsWith("application/json")) return null;
  return answer.json();
}

async function check() {
  checking?.abort();
  checking = new AbortController();
  const problems = [];
  const shown = shownPane();
  try {
    for (const pane of panes) {
      const own = [];
      const found = pane.model && await checked(next(pane, own).body, checking.signal);
      if (!found) continue;
      own.push(...found.problems);
      pane.problem = own.filter((each) => each.param === "model").map((each) => each.message);
      problems.push(...own.filter((each) => each.param !== "model" && !problems.some((other) => other.message === each.message)));
      if (pane !== shown) continue;
      for (const [name, code] of Object.entries(found.snippets)) element(`${name}-code`).textContent = code;
    }
    showProblems(problems);
    root.dataset.checked = String(Number(root.dataset.checked ?? 0) + 1);
  } catch (error) {
    if (error.name !== "AbortError") showProblems(problems);
  }
}

function shownPane() {
  return panes[Number(element("request-of").value)] ?? panes[0];
}

function showRequest() {
  const { body, saying } = next(shownPane());
  element("json-code").textContent = written(body);
  element("request-saying").textContent = saying;
}

let timer = 0;
// After every change: the state is kept, and the request is checked when the typing pauses.
function changed() {
  remember(root.dataset.memory, state());
  const address = new URL(location.href);
  address.hash = "";
  if (address.searchParams.has("model") && panes[0].model) address.searchParams.set("model", panes[0].model);
  // A link that was made is that of what stood here then.
  if (address.href !== location.href) history.replaceState(null, "", address);
  const set = Object.values(fields()).filter((text) => text.trim()).length;
  element("set").textContent = set ? `${set} set` : "";
  showRequest();
  clearTimeout(timer);
  timer = setTimeout(check, 300);
}

function addPane() {
  made += 1;
  const pane = new Pane(element("pane"), made, { changed, answer: (each, again) => run([each], "", again), close: closePane });
  panes.push(pane);
  element("panes").append(pane.root);
  pane.refresh();
  arrange();
  return pane;
}

function closePane(pane) {
  pane.running?.abort();
  panes.splice(panes.indexOf(pane), 1);
  pane.root.remove();
  arrange();
  changed();
}

function arrange() {
  const two = panes.length > 1;
  root.classList.toggle("two", two);
  element("compare").hidden = two;
  element("request-of-field").hidden = !two;
  for (const pane of panes) pane.part("[data-part=close]").hidden = !two;
}

function compare() {
  const [first] = panes;
  const pane = addPane();
  const other = [...pane.select.options].find((option) => option.value && option.value !== first.model);
  pane.model = other?.value ?? first.model;
  pane.messages = first.messages;
  pane.select.focus();
  changed();
}

async function send(event) {
  event.preventDefault();
  const text = element("message").value;
  if (panes.some((pane) => pane.running)) return;
  const ready = panes.filter((pane) => text.trim() || pane.waits);
  if (ready.length) await run(ready, text.trim() ? text : "");
}

// Sends what `asked` show, with `text` as a new message where there is one, or without the last answer.
async function run(asked, text, again = false) {
  const problems = [];
  bodyOf(fields(), "", [], problems);
  const unnamed = asked.filter((pane) => !pane.model);
  for (const pane of unnamed) pane.problem = ["Choose a model."];
  if (problems.length) showProblems(problems);
  if (problems.length || unnamed.length) return;
  if (text) element("message").value = "";
  element("announcement").textContent = "";
  if (again) for (const pane of asked) pane.dropAnswer();
  const ends = await Promise.all(asked.map((pane) => answer(pane, text)));
  // A text that nobody answered is back in its field, before what was typed meanwhile.
  if (text && ends.every((end) => end === "failed")) {
    for (const pane of asked) pane.takeBack();
    element("message").value = [text, element("message").value].filter(Boolean).join("\n");
  }
  changed();
}

// Returns how it ended: "answered", "stopped" or "failed"; that is without a token.
async function answer(pane, text) {
  if (text) pane.say(text);
  const body = written(bodyOf(fields(), pane.model, pane.messages));
  const found = new Answer();
  pane.running = new AbortController();
  switchButtons();
  pane.begin(found);
  let frame = 0;
  const grow = () => {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (pane.running) pane.grow();
    });
  };
  let end = "answered";
  let failure = null;
  try {
    await found.receive(root.dataset.chat, token, body, pane.running.signal, grow);
  } catch (error) {
    end = error.name === "AbortError" ? "stopped" : "failed";
    if (end === "failed") failure = error.message;
  }
  pane.running = null;
  const note = end === "answered" ? NOTES[found.ending] : end === "stopped" ? "Stopped." : "Cut off.";
  pane.end(found, note, failure);
  switchButtons();
  announce(pane, end, found);
  // A stopped request is metered too, a moment later.
  if (found.id) showReceipt(pane, found.id, end === "stopped" ? 10 : 3);
  return end === "failed" && !found.isEmpty ? "answered" : end;
}

// Once for each answer: a reader that is told of every token would begin again at each.
function announce(pane, end, found) {
  if (end === "failed") return;
  const tokens = found.usage ? `, ${found.usage.completion_tokens.toLocaleString("en")} tokens` : "";
  const name = panes.length > 1 ? `${pane.model}: ` : "";
  element("announcement").textContent += ` ${name}${end === "stopped" ? "Answer stopped" : `Answer complete${tokens}`}.`;
}

async function showReceipt(pane, id, tries) {
  for (let left = tries; left > 0 && !pane.running; left -= 1) {
    const answer = await fetch(root.dataset.receipts.replace("ID", encodeURIComponent(id)));
    if (answer.ok && !answer.redirected) {
      // A part of a page of this gateway: numbers, and no text of a model.
      const part = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      if (!pane.running) pane.part("[data-part=receipt]").replaceChildren(...part.childNodes);
      return;
    }
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
}

function switchButtons() {
  const running = panes.some((pane) => pane.running);
  element("send").disabled = running;
  element("stop").hidden = !running;
}

async function shareLink() {
  const told = element("link-told");
  try {
    const fragment = await fragmentOf(state());
    const address = new URL(location.href);
    address.hash = fragment;
    history.replaceState(null, "", address);
    told.textContent = "The link is in the address bar, with all that stands here in it.";
    await navigator.clipboard?.writeText(address.href);
    if (navigator.clipboard) told.textContent = "Link copied. All that stands here is in it; no server gets that part.";
  } catch (error) {
    if (error instanceof LinkTooLong) told.textContent = "This is too long for a link. Remove messages.";
  }
}

async function begin() {
  const linked = await stateOf(location.hash);
  const kept = linked ?? remembered(root.dataset.memory);
  if (kept?.panes.length) restore(kept);
  else addPane();
  const { asked, first } = root.dataset;
  // The model of the address comes before that of the last visit, but not before a link's own.
  if (asked && !linked) panes[0].model = asked;
  else if (!kept) panes[0].model = first;
  element("drawer").open = matchMedia("(min-width: 1021px)").matches;
  root.hidden = false;
  element("code").hidden = false;
  changed();
}

if (root) {
  element("say").addEventListener("submit", send);
  element("stop").addEventListener("click", () => panes.forEach((pane) => pane.running?.abort()));
  element("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element("say").requestSubmit();
  });
  element("clear").addEventListener("click", () => {
    for (const pane of panes) {
      pane.running?.abort();
      pane.messages = [];
    }
    changed();
  });
  element("compare").addEventListener("click", compare);
  element("link").addEventListener("click", shareLink);
  element("request-of").addEventListener("change", changed);
  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", () => {
      element(button.dataset.example).value = JSON.stringify(EXAMPLES[button.dataset.example], null, 2);
      changed();
    });
  }
  element("settings").addEventListener("submit", (event) => event.preventDefault());
  element("settings").addEventListener("input", changed);
  element("message").addEventListener("input", changed);
  begin();
}
