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

async function copy(source) {
  const text = source.value ?? source.textContent;
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Without HTTPS a browser has no clipboard to offer but that of the selection.
  getSelection().selectAllChildren(source);
  if (source.select) source.select();
  document.execCommand("copy");
}

for (const button of document.querySelectorAll("[data-copies]")) {
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await copy(document.getElementById(button.dataset.copies));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it and copy";
    }
    setTimeout(() => { button.textContent = label; }, 2000);
  });
}
