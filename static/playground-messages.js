// The conversation with one model: a list of messages that can be changed, its answer as it comes, its receipt.

import { copies, show } from "./playground-markdown.js";

const NAMES = { system: "System", user: "You", tool: "Result" };
const EDIT = ".message-tools button:nth-of-type(2)";
const MOST_LIKELY = 500;

function made(name, className, ...children) {
  const element = document.createElement(name);
  element.className = className;
  element.append(...children);
  return element;
}

function button(label, action) {
  const element = made("button", "quiet", label);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function seconds({ since, until }) {
  return `${((until - since) / 1000).toFixed(1)} s`;
}

export class Pane {
  // Each entry is a message as it is sent, and what is only shown: `note`, `thought`, `likely`.
  entries = [];
  running = null;
  #failure = null;
  #isTakenBack = false;

  // `actions`: `changed()` after a change by the reader, `answer(pane, again)`, `close(pane)`.
  constructor(template, number, actions) {
    this.root = template.content.firstElementChild.cloneNode(true);
    this.actions = actions;
    this.select = this.part("select");
    this.select.id = `model-${number}`;
    this.part("label").htmlFor = this.select.id;
    this.part("[data-part=problem]").id = `problem-${number}`;
    this.select.setAttribute("aria-describedby", `problem-${number}`);
    this.list = this.part("[data-part=messages]");
    this.select.addEventListener("change", () => actions.changed());
    this.part("[data-part=close]").addEventListener("click", () => actions.close(this));
    this.part("[data-part=retry]").addEventListener("click", () => actions.answer(this, true));
    this.part("[data-part=add]").addEventListener("click", () => {
      const entry = { message: { role: "user", content: "" }, editing: true };
      this.entries.push(entry);
      this.refresh();
      this.#focus(entry);
      actions.changed();
    });
  }

  part(selector) {
    return this.root.querySelector(selector);
  }

  get model() {
    return this.select.value;
  }

  // A model that is not served leaves the choice open, and is named.
  set model(id) {
    this.select.value = id;
    if (this.select.value === id) return;
    this.select.value = "";
    this.problem = id ? [`${id} is not served here. Choose another model.`] : [];
  }

  set problem(lines) {
    this.part("[data-part=problem]").textContent = lines.join(" ");
    this.select.setAttribute("aria-invalid", String(lines.length > 0));
  }

  set status(text) {
    this.part("[data-part=receipt]").textContent = text;
  }

  get messages() {
    return this.entries.map((entry) => entry.message);
  }

  set messages(messages) {
    this.entries = messages.map((message) => ({ message: structuredClone(message) }));
    this.#failure = null;
    this.#isTakenBack = false;
    this.status = "";
    this.refresh();
  }

  // Whether the conversation as it stands can be answered.
  get waits() {
    return ["user", "tool"].includes(this.entries.at(-1)?.message.role);
  }

  say(content) {
    this.entries.push({ message: { role: "user", content } });
    this.refresh();
    this.toEnd();
  }

  takeBack() {
    this.entries.pop();
    this.#isTakenBack = true;
    this.refresh();
  }

  dropAnswer() {
    if (this.entries.at(-1)?.message.role === "assistant") this.entries.pop();
  }

  // Begins the answer, which `grow` shows as it comes.
  begin(answer) {
    this.#failure = null;
    this.#isTakenBack = false;
    for (const entry of this.entries) entry.editing = false;
    this.entries.push({ message: answer.message, answer, by: this.model });
    this.status = "Waiting for the first token …";
    this.refresh();
    this.toEnd();
  }

  grow() {
    const entry = this.entries.at(-1);
    const answer = entry?.answer;
    if (!answer) return;
    const follows = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 40;
    this.status = `First token seen here after ${Math.round(answer.first)} ms`;
    entry.block.hidden = false;
    this.#fill(entry);
    if (follows) this.toEnd();
  }

  // `failure` is what went wrong, if anything; `note` stands below the answer.
  end(answer, note, failure) {
    const entry = this.entries.find((each) => each.answer === answer);
    this.status = "";
    // Cleared meanwhile.
    if (!entry) return this.refresh();
    delete entry.answer;
    if (answer.isEmpty) this.entries.pop();
    else Object.assign(entry, { note, thought: answer.reasoning, likely: answer.likely });
    this.#failure = failure;
    this.refresh();
    this.toEnd();
  }

  toEnd() {
    this.list.scrollTop = this.list.scrollHeight;
  }

  refresh() {
    const blocks = this.entries.map((entry, index) => this.#block(entry, index));
    if (this.#failure) {
      const failed = made("div", "message error", made("p", "content", this.#failure));
      failed.setAttribute("role", "alert");
      blocks.push(failed);
    }
    const last = this.entries.at(-1)?.message;
    const canRetry = !this.running && !this.#isTakenBack && (last?.role === "assistant" || (last && this.#failure));
    this.part("[data-part=retry]").hidden = !canRetry;
    if (!blocks.length) {
      blocks.push(made("p", "hint", "Nothing was said yet. What you say stays in this tab, and is not stored here."));
    }
    this.list.replaceChildren(...blocks);
  }

  #block(entry, index) {
    const { role } = entry.message;
    entry.block = made("div", `message ${role}`);
    entry.name = made("p", "hint", role === "assistant" ? (entry.by ?? "Assistant") : NAMES[role]);
    const head = made("div", "message-head", entry.name, this.#tools(entry, index));
    entry.content = made("div", "content");
    entry.block.append(head, entry.content);
    entry.block.hidden = Boolean(entry.answer?.isEmpty);
    this.#fill(entry);
    if (entry.note) entry.block.append(made("p", "hint", entry.note));
    if (entry.likely?.length) entry.block.append(likely(entry.likely));
    const unanswered = this.#unanswered(entry, index);
    if (unanswered.length && !this.running) entry.block.append(this.#results(unanswered, index));
    return entry.block;
  }

  #tools(entry, index) {
    if (this.running) return "";
    const edit = button(entry.editing ? "Done" : "Edit", () => {
      entry.editing = !entry.editing;
      this.refresh();
      this.#focus(entry);
    });
    const remove = button("Remove", () => {
      const ids = (entry.message.tool_calls ?? []).map((call) => call.id);
      this.entries.splice(index, 1);
      // A result without its call is refused by most model servers.
      this.entries = this.entries.filter(({ message }) => !ids.includes(message.tool_call_id));
      this.#failure = null;
      this.refresh();
      this.actions.changed();
    });
    return made("div", "message-tools", copies(() => entry.message.content, "Copy"), edit, remove);
  }

  #focus(entry) {
    const area = entry.editing && entry.block.querySelector("textarea");
    (area || entry.block.querySelector(EDIT)).focus();
  }

  // What changes while an answer comes.
  #fill(entry) {
    const { message, content } = entry;
    const thought = entry.answer?.reasoning ?? entry.thought;
    if (message.reasoning_content) this.#reason(entry, thought, Boolean(entry.answer) && !message.content);
    if (entry.editing) {
      content.replaceChildren(this.#editor(entry));
    } else if (message.role === "assistant") {
      show(content, message.content);
    } else {
      content.textContent = message.content;
    }
    if (!message.tool_calls) return;
    const lines = message.tool_calls.map((call) => `${call.function.name}(${call.function.arguments})`);
    if (entry.calls?.parentElement !== entry.block) entry.block.append((entry.calls = made("pre", "calls")));
    entry.calls.textContent = lines.join("\n");
  }

  // Folded above the answer. Its time is not read aloud at every token.
  #reason(entry, thought, thinking) {
    let fold = entry.block.querySelector(".reasoning");
    if (!fold) {
      const summary = made("summary", "");
      fold = made("details", "reasoning", summary, made("pre", ""));
      fold.open = entry.unfolded ?? false;
      fold.addEventListener("toggle", () => { entry.unfolded = fold.open; });
      entry.content.before(fold);
    }
    const extent = thought ? ` ${seconds(thought)}, ${thought.tokens} tokens` : "";
    fold.firstChild.textContent = `${thinking ? "Thinking…" : "Thought for"}${extent || " a while"}`;
    fold.lastChild.textContent = entry.message.reasoning_content;
  }

  #editor(entry) {
    const { message } = entry;
    const area = document.createElement("textarea");
    area.value = message.content;
    area.rows = Math.min(20, message.content.split("\n").length + 2);
    area.setAttribute("aria-label", "Text of the message");
    area.addEventListener("input", () => {
      message.content = area.value;
      this.actions.changed();
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") entry.block.querySelector(EDIT).click();
    });
    if (message.role === "tool" || message.tool_calls) return area;
    const role = document.createElement("select");
    role.setAttribute("aria-label", "Role of the message");
    for (const each of ["system", "user", "assistant"]) role.append(new Option(each, each, false, each === message.role));
    role.addEventListener("change", () => {
      // Only an assistant has reasoned.
      entry.message = { role: role.value, content: message.content };
      this.refresh();
      entry.block.querySelector("select").focus();
      this.actions.changed();
    });
    return made("div", "stack tight", role, area);
  }

  #unanswered({ message }, index) {
    const answered = new Set(this.entries.slice(index + 1).map((entry) => entry.message.tool_call_id));
    return (message.tool_calls ?? []).filter((call) => !answered.has(call.id));
  }

  #results(calls, index) {
    const form = made("form", "stack tight");
    const areas = calls.map((call) => {
      const area = made("textarea", "source");
      area.rows = 2;
      const label = made("label", "", `Answer of ${call.function.name}`, area);
      form.append(made("div", "field", label));
      return area;
    });
    const send = made("button", "", calls.length > 1 ? "Send results" : "Send result");
    form.append(made("p", "", send));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const results = calls.map((call, place) => ({
        message: { role: "tool", tool_call_id: call.id, content: areas[place].value },
      }));
      this.entries.splice(index + 1, 0, ...results);
      this.refresh();
      this.actions.answer(this);
    });
    return form;
  }
}

// The tokens of an answer with their probabilities, and what else was likely.
function likely(tokens) {
  const rows = tokens.slice(0, MOST_LIKELY).map((token) => {
    const others = token.top_logprobs.filter((other) => other.token !== token.token);
    return made("tr", "", made("td", "", made("code", "", JSON.stringify(token.token))),
      made("td", "n", percent(token.logprob)),
      made("td", "", others.map((other) => `${JSON.stringify(other.token)} ${percent(other.logprob)}`).join(", ")));
  });
  const head = made("tr", "", ...["Token", "Probability", "Others"].map((name) => made("th", name === "Probability" ? "n" : "", name)));
  const table = made("table", "", made("thead", "", head), made("tbody", "", ...rows));
  const scroll = made("div", "scroll", table);
  scroll.tabIndex = 0;
  return made("details", "likely", made("summary", "", "Likely tokens"), scroll);
}

function percent(logprob) {
  return `${(100 * Math.exp(logprob)).toFixed(1)} %`;
}
