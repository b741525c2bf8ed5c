// What the playground remembers: in this tab until it is closed, and in a link that the reader asks for.
//
// A link has everything behind its "#", which browsers send to no server.

import { FIELDS } from "./playground-request.js";

const LONGEST_LINK = 16_000;
const LARGEST = 1_000_000;
const ROLES = new Set(["system", "user", "assistant", "tool"]);

export class LinkTooLong extends Error {}

// The state that `found` describes; what is unknown in it is left out. None where it is no state.
function checked(found) {
  if (!Array.isArray(found?.panes)) return null;
  return {
    fields: Object.fromEntries(FIELDS.map((name) => [name, text(found.fields?.[name])])),
    text: text(found.text),
    panes: found.panes.slice(0, 2).map((pane) => ({
      model: text(pane?.model),
      messages: Array.isArray(pane?.messages) ? pane.messages.map(message).filter(Boolean) : [],
    })),
  };
}

function text(value) {
  return typeof value === "string" ? value : "";
}

function message(found) {
  if (!ROLES.has(found?.role) || typeof found.content !== "string") return null;
  const kept = { role: found.role, content: found.content };
  if (typeof found.reasoning_content === "string") kept.reasoning_content = found.reasoning_content;
  if (found.role === "tool") kept.tool_call_id = text(found.tool_call_id);
  if (Array.isArray(found.tool_calls)) {
    kept.tool_calls = found.tool_calls.map((call) => ({
      id: text(call?.id),
      type: "function",
      function: { name: text(call?.function?.name), arguments: text(call?.function?.arguments) },
    }));
  }
  return kept;
}

export function remember(name, state) {
  try {
    sessionStorage.setItem(name, JSON.stringify(state));
  } catch {
    // Storage is full or forbidden: the page works, and forgets when it is left.
  }
}

export function remembered(name) {
  try {
    return checked(JSON.parse(sessionStorage.getItem(name)));
  } catch {
    return null;
  }
}

// The part of an address behind "#". Throws `LinkTooLong`.
export async function fragmentOf(state) {
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  const letters = btoa(String.fromCharCode(...packed.subarray(0, LONGEST_LINK)));
  if (letters.length > LONGEST_LINK) throw new LinkTooLong();
  return `s=${letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

// The state behind "#", or null where there is none that can be read.
export async function stateOf(fragment) {
  if (!fragment.startsWith("#s=") || fragment.length > LONGEST_LINK + 3) return null;
  try {
    const letters = atob(fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const bytes = await through(new DecompressionStream("deflate-raw"), packed);
    return checked(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return null;
  }
}

async function through(transform, bytes) {
  const parts = [];
  let size = 0;
  const stream = new Blob([bytes]).stream().pipeThrough(transform);
  for (const reader = stream.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > LARGEST) throw new LinkTooLong();
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
