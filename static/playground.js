// The playground: sends a chat request, shows the answer as it streams, and checks what is typed.

const root = document.getElementById("playground");
const element = (id) => document.getElementById(id);
const token = document.querySelector("#settings [name=csrfmiddlewaretoken]")?.value;
const conversation = [];
let running = null;
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
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

// The request that the form describes. Problems of fields that are no JSON go into `problems`.
function request(messages, problems = []) {
  const body = { model: element("model").value, messages: [...messages], stream: true };
  const system = element("system").value.trim();
  if (system) body.messages.unshift({ role: "system", content: system });
  for (const name of NUMBERS) {
    const text = element(name).value.trim();
    if (!text) continue;
    body[name] = Number(text);
    if (Number.isNaN(body[name])) {
      problems.push({ param: name, message: `${name}: "${text}" is not a number.`, pointer: "" });
      delete body[name];
    }
  }
  const tools = parsed("tools", problems);
  if (tools !== undefined) body.tools = tools;
  const schema = parsed("schema", problems);
  if (schema !== undefined) {
    body.response_format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
  }
  return body;
}

function parsed(id, problems) {
  const text = element(id).value.trim();
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    const param = id === "schema" ? "response_format" : id;
    problems.push({ param, message: `Not JSON yet: ${error.message}`, pointer: "" });
    return undefined;
  }
}

function placeOf(param) {
  if (param.startsWith("tool")) return "tools-problem";
  if (param.startsWith("response_format")) return "schema-problem";
  return param === "model" ? "model-problem" : "parameter-problem";
}

function showProblems(problems) {
  const places = ["tools-problem", "schema-problem", "model-problem", "parameter-problem"];
  for (const place of places) {
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

async function check() {
  const problems = [];
  const typed = element("message").value.trim();
  const messages = [...conversation];
  // With nothing typed, the request is the one that got the last answer.
  if (!typed && messages.length) messages.pop();
  else messages.push({ role: "user", content: typed || "Hello!" });
  const body = request(messages, problems);
  checking?.abort();
  checking = new AbortController();
  try {
    const answer = await fetch(root.dataset.check, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrftoken": token },
      body: JSON.stringify(body),
      signal: checking.signal,
    });
    if (!answer.ok || !answer.headers.get("content-type").startsWith("application/json")) return;
    const found = await answer.json();
    showProblems([...problems, ...found.problems]);
    for (const [name, code] of Object.entries(found.snippets)) element(`${name}-code`).textContent = code;
    root.dataset.checked = String(Number(root.dataset.checked ?? 0) + 1);
  } catch (error) {
    if (error.name !== "AbortError") showProblems(problems);
  }
}

let timer = 0;
function checkSoon() {
  clearTimeout(timer);
  timer = setTimeout(check, 300);
}

function add(role, text) {
  element("nothing")?.remove();
  const block = document.createElement("div");
  block.className = `message ${role}`;
  const name = document.createElement("p");
  name.className = "hint";
  name.textContent = role === "user" ? "You" : role === "error" ? "Error" : element("model").value;
  const content = document.createElement("div");
  content.className = "content";
  content.textContent = text;
  block.append(name, content);
  element("messages").append(block);
  block.scrollIntoView({ block: "nearest" });
  return block;
}

// Yields the data of each server-sent event. The gateway sends one line of data an event.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    buffer += value;
    const parts = buffer.split("\n\n");
    buffer = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield part.slice(6);
  }
}

// The parts of a streamed tool call arrive with the call's index.
function addCalls(calls, deltas) {
  for (const delta of deltas) {
    const call = (calls[delta.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
    if (delta.id) call.id = delta.id;
    call.function.name += delta.function?.name ?? "";
    call.function.arguments += delta.function?.arguments ?? "";
  }
}

function showCalls(block, calls) {
  let shown = block.querySelector("pre");
  if (!shown) block.append((shown = document.createElement("pre")));
  shown.textContent = calls.map((call) => `${call.function.name}(${call.function.arguments})`).join("\n");
}

// Reasoning stands folded above the answer. Its time is not read aloud at every token.
function showReasoning(block, reasoning) {
  let shown = block.querySelector(".reasoning");
  if (!shown) {
    shown = document.createElement("details");
    shown.className = "reasoning";
    const summary = document.createElement("summary");
    const time = document.createElement("span");
    time.ariaHidden = "true";
    summary.append("Thinking ", time);
    shown.append(summary, document.createElement("pre"));
    block.querySelector(".content").before(shown);
  }
  shown.querySelector("span").textContent = seconds(reasoning);
  shown.querySelector("pre").textContent = reasoning.text;
}

function endReasoning(block, reasoning) {
  const summary = block?.querySelector(".reasoning summary");
  if (summary) summary.textContent = `Thought for ${seconds(reasoning)}`;
}

function seconds({ since, until }) {
  return `${((until - since) / 1000).toFixed(1)} s`;
}

// A text that was not answered is back in its field, before what was typed meanwhile.
function giveBack(text) {
  const field = element("message");
  field.value = [text, field.value].filter(Boolean).join("\n");
}

async function send(event) {
  event.preventDefault();
  const text = element("message").value.trim();
  const problems = [];
  if (!text || running) return;
  const said = { role: "user", content: text };
  const body = request([...conversation, said], problems);
  if (problems.length) {
    showProblems(problems);
    return;
  }
  running = new AbortController();
  switchButtons();
  const question = add("user", text);
  element("message").value = "";
  const answer = { role: "assistant", content: "" };
  const reasoning = { text: "", since: 0, until: 0 };
  const calls = [];
  let block = null;
  let id = null;
  element("receipt").textContent = "Waiting for the first token …";
  const started = performance.now();
  let first = null;
  try {
    const response = await fetch(root.dataset.chat, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrftoken": token },
      body: JSON.stringify(body),
      signal: running.signal,
    }).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The gateway cannot be reached. Send the message again.");
    });
    id = response.headers.get("x-request-id");
    // A refused request is not metered, so it has no receipt.
    if (!response.ok && response.status < 500) id = null;
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const data of events(response.body)) {
      if (data === "[DONE]") continue;
      const frame = JSON.parse(data);
      if (frame.error) throw new Error(frame.error.message);
      const delta = frame.choices[0]?.delta;
      if (!delta || !(delta.content || delta.reasoning_content || delta.tool_calls)) continue;
      if (first === null) {
        first = performance.now() - started;
        element("receipt").textContent = `First token seen here after ${Math.round(first)} ms`;
      }
      block ??= add("assistant", "");
      if (delta.reasoning_content) {
        reasoning.text += delta.reasoning_content;
        reasoning.until = performance.now();
        reasoning.since ||= reasoning.until;
        showReasoning(block, reasoning);
      }
      if (delta.content) {
        endReasoning(block, reasoning);
        answer.content += delta.content;
        block.querySelector(".content").textContent = answer.content;
      }
      if (delta.tool_calls) {
        addCalls(calls, delta.tool_calls);
        showCalls(block, calls);
      }
    }
    conversation.push(said);
    // A call needs the tool's answer before the conversation can go on, so only texts are kept.
    if (answer.content) conversation.push(answer);
    else conversation.pop();
  } catch (error) {
    element("receipt").textContent = "";
    if (error.name === "AbortError") {
      block?.classList.add("stopped");
    } else {
      if (!block) question.remove();
      add("error", error.message);
      giveBack(text);
    }
  } finally {
    endReasoning(block, reasoning);
    const stopped = running.signal.aborted;
    running = null;
    switchButtons();
    // A stopped request is metered too, a moment later.
    if (id) await showReceipt(id, stopped ? 10 : 3);
    checkSoon();
  }
}

async function showReceipt(id, tries) {
  for (let left = tries; left > 0; left -= 1) {
    const answer = await fetch(root.dataset.receipts.replace("ID", encodeURIComponent(id)));
    if (answer.ok && !answer.redirected) {
      element("receipt").innerHTML = await answer.text();
      return;
    }
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
  element("receipt").textContent = "";
}

function switchButtons() {
  element("send").disabled = running !== null;
  element("stop").hidden = running === null;
}

if (root) {
  element("say").addEventListener("submit", send);
  element("stop").addEventListener("click", () => running?.abort());
  element("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element("say").requestSubmit();
  });
  element("clear").addEventListener("click", () => {
    conversation.length = 0;
    element("messages").replaceChildren();
    element("receipt").textContent = "";
    checkSoon();
  });
  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", () => {
      element(button.dataset.example).value = JSON.stringify(EXAMPLES[button.dataset.example], null, 2);
      checkSoon();
    });
  }
  element("settings").addEventListener("submit", (event) => event.preventDefault());
  element("settings").addEventListener("input", checkSoon);
  element("message").addEventListener("input", checkSoon);
  check();
}
