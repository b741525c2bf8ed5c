// Sends one request and gathers its answer as it streams.

export class Answer {
  message = { role: "assistant", content: "" };
  reasoning = { since: 0, until: 0, tokens: 0 };
  likely = [];
  usage = null;
  ending = "";
  id = null;
  first = null;
  #calls = new Map();

  get isEmpty() {
    return this.first === null;
  }

  // Sends `text`, the body, and calls `changed` at each part. Throws what went wrong, in words for the reader.
  async receive(address, token, text, signal, changed) {
    const started = performance.now();
    const response = await fetch(address, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrftoken": token },
      body: text,
      signal,
    }).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The gateway cannot be reached. Send the message again.");
    });
    // A refused request is not metered, so it has no receipt.
    if (response.ok || response.status >= 500) this.id = response.headers.get("x-request-id");
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const data of events(response.body)) {
      if (data === "[DONE]") continue;
      const frame = JSON.parse(data);
      if (frame.error) throw new Error(frame.error.message);
      this.usage = frame.usage ?? this.usage;
      const choice = frame.choices[0];
      if (choice && this.#take(choice, started)) changed();
    }
    this.reasoning.tokens = this.usage?.completion_tokens_details?.reasoning_tokens || this.reasoning.tokens;
  }

  #take(choice, started) {
    const { delta } = choice;
    this.ending = choice.finish_reason ?? this.ending;
    this.likely.push(...(choice.logprobs?.content ?? []));
    if (!(delta.content || delta.reasoning_content || delta.tool_calls)) return false;
    const now = performance.now();
    this.first ??= now - started;
    if (delta.reasoning_content) {
      this.message.reasoning_content = (this.message.reasoning_content ?? "") + delta.reasoning_content;
      this.reasoning.since ||= now;
      this.reasoning.until = now;
      // Until the usage says it: model servers send a part for each token, or nearly.
      this.reasoning.tokens += 1;
    }
    this.message.content += delta.content ?? "";
    for (const part of delta.tool_calls ?? []) this.#addCall(part);
    return true;
  }

  // The parts of a streamed call arrive with the call's index. It names the call and is no place in the list: a
  // server may send any number.
  #addCall(part) {
    let call = this.#calls.get(part.index);
    if (!call) {
      call = { id: "", type: "function", function: { name: "", arguments: "" } };
      this.#calls.set(part.index, call);
      (this.message.tool_calls ??= []).push(call);
    }
    if (part.id) call.id = part.id;
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
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
