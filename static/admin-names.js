// Gives an accessible name to the fields that Django's admin shows without a label of their own: date
// and time, columns of inline tables, select2 boxes, the search. The names are words of the page.
"use strict";

(() => {
  const words = (element) => element.textContent.replace(/\s+/g, " ").trim().replace(/:$/, "");
  const isNamed = (field) =>
    field.labels?.length > 0 || field.hasAttribute("aria-label") || field.hasAttribute("aria-labelledby");

  function columnOf(field) {
    const cell = field.closest("td");
    return cell?.closest("table").tHead?.rows[0].cells[cell.cellIndex];
  }

  function nameFields(root) {
    for (const field of root.querySelectorAll(".form-row :is(input:not([type=hidden]), select, textarea)")) {
      const heading = columnOf(field) ?? field.closest(".form-row").querySelector("label, legend");
      if (!heading || isNamed(field)) continue;
      const part = field.matches(".vDateField") ? ", date" : field.matches(".vTimeField") ? ", time" : "";
      field.setAttribute("aria-label", words(heading) + part);
    }
    // select2 names the box by what is chosen: nothing at first.
    for (const box of root.querySelectorAll(".select2-selection")) {
      const field = box.closest(".select2-container").previousElementSibling;
      const heading = field && (field.labels?.[0] ?? columnOf(field));
      const shown = box.querySelector("[role=textbox]");
      if (!heading || !shown) continue;
      heading.id ||= `${field.id}-heading`;
      box.setAttribute("aria-labelledby", `${heading.id} ${shown.id}`);
      shown.setAttribute("aria-labelledby", `${heading.id} ${shown.id}`);
    }
    for (const help of root.querySelectorAll(".help-tooltip[aria-label]:not([role])")) help.setAttribute("role", "img");
  }

  // After the load handlers of Django's own scripts, which make some of these fields.
  const soon = () => setTimeout(() => nameFields(document));
  window.addEventListener("load", soon);
  document.addEventListener("formset:added", soon);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("searchbar")?.setAttribute("aria-label", "Search");
  });
})();
