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

for (const select of document.querySelectorAll("[data-submits]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
for (const element of document.querySelectorAll("[data-unneeded]")) element.hidden = true;

// On a telephone the menu scrolls sideways; the current entry is in sight.
const current = document.querySelector(".top nav [aria-current]");
if (current) current.parentElement.scrollLeft = current.offsetLeft - (innerWidth - current.offsetWidth) / 2;

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

// A button copies the element that it names, or what its script gave it as `copied`.
for (const button of document.querySelectorAll("[data-copies]")) button.hidden = false;
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copies]");
  if (!button) return;
  const label = (button.dataset.label ??= button.textContent);
  const source = document.getElementById(button.dataset.copies);
  try {
    await copy(button.copied ? button.copied() : source.value ?? source.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select it and copy";
  }
  setTimeout(() => { button.textContent = label; }, 2000);
});

// What a page keeps in this tab is the person's, who leaves.
document.querySelector("form[action$='/logout']")?.addEventListener("submit", () => sessionStorage.clear());

// What a bar stands for, beside it: by pointer, keyboard, and the first touch.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
document.body.append(tip);

function showTip(bar) {
  tip.textContent = bar.dataset.tip;
  tip.hidden = false;
  const place = bar.getBoundingClientRect();
  const left = place.left + place.width / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - tip.offsetWidth - 8)) + scrollX}px`;
  const parts = [...bar.querySelectorAll("rect:not(.reach)")].map((part) => part.getBoundingClientRect().top);
  tip.style.top = `${Math.min(place.bottom, ...parts) - tip.offsetHeight - 8 + scrollY}px`;
}

for (const bar of document.querySelectorAll("[data-tip]")) {
  // The browser's own tooltip would come late and over this one.
  bar.querySelector("title")?.remove();
  // A finger enters before it touches and leaves before it clicks, so neither counts for it.
  bar.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") showTip(bar); });
  bar.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") tip.hidden = true; });
  bar.addEventListener("focus", () => showTip(bar));
  bar.addEventListener("blur", () => { tip.hidden = true; });
  let touched = false;
  bar.addEventListener("touchstart", () => { touched = tip.hidden || tip.textContent !== bar.dataset.tip; }, { passive: true });
  bar.addEventListener("click", (event) => {
    if (touched) {
      event.preventDefault();
      showTip(bar);
    }
    touched = false;
  });
}
addEventListener("pointerdown", (event) => { if (!event.target.closest("[data-tip]")) tip.hidden = true; });
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
