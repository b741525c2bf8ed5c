// The body of a request, from what the playground's fields hold.

const NUMBERS = ["temperature", "top_p", "max_tokens", "seed", "frequency_penalty", "presence_penalty", "top_logprobs"];
export const FIELDS = ["system", ...NUMBERS, "stops", "tools", "tool_choice", "schema"];

// Exactly the bytes that are sent, and shown as the request.
export function written(body) {
  return JSON.stringify(body, null, 2);
}

// `fields` are the texts of `FIELDS`. Problems of fields that cannot be sent go into `problems`.
export function bodyOf(fields, model, messages, problems = []) {
  const body = { model, messages: [...messages], stream: true, stream_options: { include_usage: true } };
  if (fields.system.trim()) body.messages.unshift({ role: "system", content: fields.system });
  for (const name of NUMBERS) {
    const number = numberOf(fields, name, problems);
    if (number !== undefined) body[name] = number;
  }
  if (body.top_logprobs !== undefined) body.logprobs = true;
  const stops = fields.stops.split("\n").filter(Boolean);
  if (stops.length) body.stop = stops;
  const tools = parsed(fields, "tools", problems);
  if (tools !== undefined) {
    body.tools = tools;
    if (fields.tool_choice) body.tool_choice = fields.tool_choice;
  }
  const schema = parsed(fields, "schema", problems);
  if (schema !== undefined) {
    body.response_format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
  }
  return body;
}

function numberOf(fields, name, problems) {
  const text = fields[name].trim();
  if (!text) return undefined;
  const number = Number(text);
  if (Number.isFinite(number)) return number;
  problems.push({ param: name, message: `${name}: "${text}" is not a number.`, pointer: "" });
  return undefined;
}

function parsed(fields, name, problems) {
  const text = fields[name].trim();
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    const param = name === "schema" ? "response_format" : name;
    problems.push({ param, message: `Not JSON yet: ${error.message}`, pointer: "" });
    return undefined;
  }
}
