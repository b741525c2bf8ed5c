// The console works without this file. With it, filters act on change and texts can be copied.
"use strict";

// A form whose answer is a page is sent when a choice changes; what is typed waits for Enter.
for (const form of document.querySelectorAll("[data-submits-on-change]")) {
  form.addEventListener("change", (event) => {
    if (event.target.tagName === "SELECT") form.requestSubmit();
  });
  // Empty fields mean nothing in the address, so they stay out of it.
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
  });
  // The page that "Back" shows again has its fields back too.
  addEventListener("pageshow", () => {
    for (const field of form.elements) field.disabled = false;
  });
}

// A menu closes when one goes on elsewhere.
addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(":is(.switch, .export)[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// On a telephone the filters are one line, until one of them is wrong.
for (const fold of document.querySelectorAll("[data-folds]")) {
  if (matchMedia("(max-width: 760px)").matches && !fold.querySelector("[aria-invalid]")) fold.open = false;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without HTTPS a browser has no clipboard to offer but that of the selection.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("not copied");
}

// A button copies the element that it names, the one before it, or what its script gave it as `copied`.
for (const button of document.querySelectorAll("[data-copies]")) button.hidden = false;
// Rows that came later have buttons too.
document.addEventListener("toggle", (event) => {
  const button = event.target.querySelector?.(":scope > [data-copies]");
  if (button) button.hidden = false;
}, true);
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copies]");
  if (!button) return;
  const label = (button.dataset.label ??= button.textContent);
  const source = button.dataset.copies ? document.getElementById(button.dataset.copies) : button.previousElementSibling;
  try {
    await copy(button.copied ? button.copied() : source.value ?? source.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select it and copy";
  }
  setTimeout(() => { button.textContent = label; }, 2000);
});

// What pages keep in this tab, and texts that were spoken in this browser, are the person's, who leaves.
document.querySelector("form[action$='/logout']")?.addEventListener("submit", () => {
  sessionStorage.clear();
  globalThis.indexedDB?.deleteDatabase("svc-voices");
});

// What a bar stands for, above it. A chart is one stop of the Tab key, and arrow keys go from bar to bar. A finger
// shows the bar that is nearest to it, however narrow, and a second tap there follows its link.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);
let told = null;

function showTip(bar) {
  hideTip();
  told = bar;
  bar.classList.add("told");
  tip.textContent = bar.dataset.tip;
  tip.hidden = false;
  const place = bar.getBoundingClientRect();
  const left = place.left + place.width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
  const parts = [...bar.querySelectorAll("rect:not(.reach)")].map((part) => part.getBoundingClientRect().top);
  tip.style.top = `${Math.min(place.bottom, ...parts) - tip.offsetHeight - 8 + scrollY}px`;
}

function hideTip() {
  told?.classList.remove("told");
  told = null;
  tip.hidden = true;
}

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

for (const plot of document.querySelectorAll(".plot")) {
  const bars = [...plot.querySelectorAll("[data-tip]")];
  if (!bars.length) continue;
  const stopAt = (bar) => { for (const each of bars) each.setAttribute("tabindex", each === bar ? "0" : "-1"); };
  stopAt(bars.at(-1));
  for (const bar of bars) {
    // The browser's own tooltip would come late and over this one.
    bar.querySelector("title")?.remove();
    bar.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") showTip(bar); });
    bar.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideTip(); });
    bar.addEventListener("focus", () => { stopAt(bar); if (bar.matches(":focus-visible")) showTip(bar); });
    bar.addEventListener("blur", (event) => { if (told === bar && event.relatedTarget) hideTip(); });
  }
  plot.addEventListener("keydown", (event) => {
    const at = bars.indexOf(event.target);
    const to = { Home: 0, End: bars.length - 1 }[event.key] ?? at + STEPS[event.key];
    if (at < 0 || !bars[to]) return;
    event.preventDefault();
    bars[to].focus();
  });
  const nearest = (event) => bars.reduce((best, bar) => (distance(bar, event) < distance(best, event) ? bar : best));
  let before = null;
  plot.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") return;
    before = told;
    showTip(nearest(event));
  });
  plot.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" && told) showTip(nearest(event));
  });
  plot.addEventListener("click", (event) => {
    if (event.pointerType !== "touch" || !told) return;
    event.preventDefault();
    const link = told.getAttribute("href");
    if (told === before && link) location.assign(link);
  });
}

function distance(bar, event) {
  const { left, width } = bar.getBoundingClientRect();
  return Math.abs(left + width / 2 - event.clientX);
}

addEventListener("pointerdown", (event) => { if (!event.target.closest(".plot")) hideTip(); });
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
