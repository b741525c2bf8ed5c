// The docs work without this file. With it, search answers while one types, and a link opens what it leads into.
const query = document.getElementById("docs-query");
const list = document.getElementById("docs-found");
const told = document.getElementById("docs-told");
const WAIT = 150;
let timer = 0;
let asking = null;

async function look() {
  asking?.abort();
  const words = query.value.trim();
  if (!words) return hide();
  asking = new AbortController();
  const address = new URL(query.form.action);
  address.search = new URLSearchParams({ q: words, format: "json" });
  try {
    const answer = await fetch(address, { signal: asking.signal });
    if (answer.ok) show((await answer.json()).found);
  } catch (error) {
    if (error.name !== "AbortError") hide();
  }
}

function show(found) {
  list.replaceChildren(...found.map(line));
  if (!found.length) list.textContent = "Nothing has all of these words.";
  list.hidden = false;
  told.textContent = found.length === 1 ? "1 result" : `${found.length} results`;
}

function line({ title, where, href, text }) {
  const link = document.createElement("a");
  link.href = href;
  const name = document.createElement("strong");
  name.textContent = title;
  const place = document.createElement("span");
  place.className = "hint";
  place.textContent = text ? `${where}: ${text}` : where;
  link.append(name, place);
  return link;
}

function hide() {
  list.hidden = true;
  told.textContent = "";
}

query.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, WAIT);
});
query.addEventListener("focus", () => { if (list.childNodes.length && query.value.trim()) list.hidden = false; });
query.form.addEventListener("focusout", (event) => { if (!query.form.contains(event.relatedTarget)) hide(); });
list.addEventListener("pointerdown", (event) => event.preventDefault());
list.addEventListener("click", (event) => { if (event.target.closest("a")) hide(); });

const STEPS = { ArrowDown: 1, ArrowUp: -1 };
query.form.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    hide();
    query.focus();
  }
  const stops = [query, ...list.querySelectorAll("a")];
  const next = stops[stops.indexOf(document.activeElement) + STEPS[event.key]];
  if (list.hidden || !next) return;
  event.preventDefault();
  next.focus();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  query.focus();
});

// A field may be inside of something folded.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let each = target?.closest("details"); each; each = each.parentElement.closest("details")) each.open = true;
  target?.scrollIntoView();
}
addEventListener("hashchange", reveal);
if (location.hash) reveal();
