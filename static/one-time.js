// A form that makes one key is sent once. A second click would replace the page with the secret by one
// that says that the key was made already.
"use strict";

for (const token of document.querySelectorAll("[name=one_time]")) {
  let sent = false;
  token.form.addEventListener("submit", (event) => {
    if (sent) event.preventDefault();
    sent = true;
  });
  // A page that "Back" shows again can be sent again.
  addEventListener("pageshow", () => { sent = false; });
}
