// Shows a model's Markdown as elements. Text never becomes markup: every character is a text node, a link
// leads to http, https or mailto only, and no picture is loaded. Each construct is searched for once, so the
// time grows with the text's length, whatever a model writes.

const DEEPEST = 8;
const LONGEST_LINK = 2000;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t](.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: (.*))?$/;
const TABLE_RULE = /^ *(?:\| *)?(?::?-+:? *\| *)+(?::?-+:? *)?$/;
const ADDRESS = /https?:\/\/[^\s<>"`]+/y;
const sources = new WeakMap();

// Makes `place` show `text`. What has not changed since the last call stays, with a selection in it.
export function show(place, text) {
  const wanted = blocks(text.split("\n"), 0);
  wanted.forEach((block, index) => {
    const node = place.childNodes[index];
    if (node && sources.get(node) === block.source) return;
    const built = block.build();
    sources.set(built, block.source);
    if (node) node.replaceWith(built);
    else place.append(built);
  });
  while (place.childNodes.length > wanted.length) place.lastChild.remove();
}

function made(name, children = [], properties = {}) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// The blocks of `lines`, each with the text that it was made from.
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [end, build] = block(lines, at, depth);
    found.push({ source: lines.slice(at, end).join("\n"), build });
    at = end;
  }
  return found;
}

// The end of the block that begins at `at`, and what builds its element.
function block(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  // The page has headings of its own above those of an answer.
  if (heading) return [at + 1, () => made(`h${Math.min(6, heading[1].length + 2)}`, inline(heading[2].trim()))];
  if (RULE.test(line)) return [at + 1, () => made("hr")];
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  let end = at + 1;
  while (end < lines.length && !isBoundary(lines, end, depth)) end += 1;
  const text = lines.slice(at, end).map((each) => each.trim()).join("\n");
  return [end, () => made("p", inline(text))];
}

function isBoundary(lines, at, depth) {
  const line = lines[at];
  if (!line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line)) return true;
  return isTable(lines, at) || (depth < DEEPEST && (QUOTE.test(line) || ITEM.test(line)));
}

function code(lines, at, [, mark, language]) {
  let end = at + 1;
  while (end < lines.length && !isClosing(lines[end], mark)) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  const build = () => made("div", [
    made("pre", [made("code", [text])], { tabIndex: 0, ariaLabel: `Code ${language.trim()}`.trim() }),
    copies(() => text, "Copy"),
  ], { className: "code" });
  return [Math.min(end + 1, lines.length), build];
}

function isClosing(line, mark) {
  const text = line.trim();
  return text.length >= mark.length && text === mark[0].repeat(text.length);
}

// A button that copies; `console.js` does it.
export function copies(text, label) {
  const button = made("button", [label], { type: "button", className: "quiet", copied: text });
  button.dataset.copies = "";
  return button;
}

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inside = lines.slice(at, end).map((line) => QUOTE.exec(line)[1]);
  return [end, () => made("blockquote", built(inside, depth + 1))];
}

function built(lines, depth) {
  return blocks(lines, depth).map((each) => each.build());
}

function list(lines, at, depth) {
  const [, margin, first] = ITEM.exec(lines[at]);
  const ordered = isNumber(first);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length >= margin.length + 2 || isNumber(item[2]) !== ordered || RULE.test(lines[end])) break;
    const next = endOfItem(lines, end + 1, item[1].length + 2);
    const rest = lines.slice(end + 1, next).map((line) => unindented(line, item[1].length + item[2].length + 1));
    items.push([item[3] ?? "", ...rest]);
    end = next;
  }
  const build = () => {
    const element = made(ordered ? "ol" : "ul", items.map((inside) => made("li", built(inside, depth + 1))));
    if (ordered) element.start = Number.parseInt(first, 10);
    return element;
  };
  return [end, build];
}

function isNumber(mark) {
  return mark.length > 1;
}

// The line after an item: what is indented belongs to it, and what directly follows its text.
function endOfItem(lines, at, indent) {
  let end = at;
  while (end < lines.length) {
    const line = lines[end];
    if (!line.trim()) {
      const next = lines[end + 1];
      if (next === undefined || !next.trim() || indentOf(next) < indent) return end + (ITEM.test(next ?? "") ? 1 : 0);
    } else if (indentOf(line) < indent && (ITEM.test(line) || isBoundary(lines, end, 0))) {
      return end;
    }
    end += 1;
  }
  return end;
}

function indentOf(line) {
  return line.length - line.trimStart().length;
}

function unindented(line, most) {
  return line.slice(Math.min(most, indentOf(line)));
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1]);
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "");
  return (text.endsWith("|") ? text.slice(0, -1) : text).split("|").map((cell) => cell.trim());
}

function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].trim() && lines[end].includes("|")) end += 1;
  const build = () => {
    const head = cells(lines[at]);
    const numeric = cells(lines[at + 1]).map((mark) => mark.endsWith(":"));
    // Only the cells that a row has: with those that it lacks, a table is as large as its square.
    const row = (name, texts) => made("tr", texts.slice(0, head.length).map((text, column) =>
      made(name, inline(text), { className: numeric[column] ? "n" : "" })));
    const body = lines.slice(at + 2, end).map((line) => row("td", cells(line)));
    return made("div", [made("table", [made("thead", [row("th", head)]), made("tbody", body)])],
      { className: "scroll", tabIndex: 0, role: "group", ariaLabel: "Table" });
  };
  return [end, build];
}

// The nodes of a text within a block.
function inline(text, depth = 0) {
  const nodes = [];
  const absent = new Set();
  let plain = "";
  let at = 0;
  const add = (node, end) => {
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(node);
    at = end;
  };
  while (at < text.length) {
    const found = depth < DEEPEST ? construct(text, at, depth, absent) : null;
    if (found?.node) {
      add(found.node, found.end);
      continue;
    }
    const end = found?.end ?? at + 1;
    plain += found?.text ?? text[at];
    at = end;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

// What begins at `at`, if it is more than a character.
function construct(text, at, depth, absent) {
  const sign = text[at];
  if (sign === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return { text: text[at + 1], end: at + 2 };
  if (sign === "`") return codeSpan(text, at, absent);
  if (sign === "*" || sign === "_" || sign === "~") return emphasis(text, at, depth, absent);
  if (sign === "[") return link(text, at, depth);
  if (sign === "!" && text[at + 1] === "[") return link(text, at + 1, depth);
  if (sign === "h") {
    ADDRESS.lastIndex = at;
    const address = ADDRESS.exec(text)?.[0].replace(/[.,;:!?)\]*_]{1,8}$/, "");
    if (address) return anchor([address], address, at + address.length);
  }
  return null;
}

function codeSpan(text, at, absent) {
  let end = at;
  while (text[end] === "`") end += 1;
  const mark = text.slice(at, end);
  const close = absent.has(mark) ? -1 : text.indexOf(mark, end);
  if (close < 0) {
    absent.add(mark);
    return { text: mark, end };
  }
  return { node: made("code", [text.slice(end, close).trim()]), end: close + mark.length };
}

const ELEMENTS = { "*": "em", _: "em", "**": "strong", __: "strong", "~~": "del" };

function emphasis(text, at, depth, absent) {
  const mark = text[at + 1] === text[at] ? text[at].repeat(2) : text[at];
  const start = at + mark.length;
  const opens = ELEMENTS[mark] && /\S/.test(text[start] ?? "") && !(mark[0] === "_" && isWord(text[at - 1]));
  if (!opens || absent.has(mark)) return { text: mark, end: start };
  for (let close = text.indexOf(mark, start); close >= 0; close = text.indexOf(mark, close + mark.length)) {
    // The star of a bold text inside is no end of this one.
    if (mark.length === 1 && text[close + 1] === mark && text[close - 1] !== mark) {
      close += 1;
      continue;
    }
    // Of three stars the outer two are those of the bold text.
    if (mark.length === 2 && text[close + 2] === mark[0]) close += 1;
    const closes = close > start && /\S/.test(text[close - 1]) && !(mark[0] === "_" && isWord(text[close + mark.length]));
    if (closes) return { node: made(ELEMENTS[mark], inline(text.slice(start, close), depth + 1)), end: close + mark.length };
  }
  absent.add(mark);
  return { text: mark, end: start };
}

function isWord(sign) {
  return sign !== undefined && /[\p{L}\p{N}]/u.test(sign);
}

function link(text, at, depth) {
  const part = text.slice(at, at + LONGEST_LINK);
  const middle = part.indexOf("](");
  const other = part.indexOf("[", 1);
  if (middle < 0 || (other >= 0 && other < middle)) return null;
  let open = 1;
  let end = middle + 2;
  for (; end < part.length && open > 0 && !/\s/.test(part[end]); end += 1) {
    if (part[end] === "(") open += 1;
    if (part[end] === ")") open -= 1;
  }
  if (open > 0) return null;
  const label = inline(part.slice(1, middle), depth + 1);
  return anchor(label.length ? label : ["link"], part.slice(middle + 2, end - 1), at + end);
}

function anchor(label, address, end) {
  if (!/^(https?:\/\/|mailto:)/i.test(address)) return null;
  const properties = { href: address, title: address, target: "_blank", rel: "noopener noreferrer" };
  return { node: made("a", label, properties), end };
}
