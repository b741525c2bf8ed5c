// The last spoken texts of one person in one organization, with their sound, in this browser's own storage.

import { Queue, decoded, samplesOf, wavOf } from "./voices-sound.js";

const MOST = 20;
// A sound above this is not kept; its text is.
const MOST_BYTES = 16_000_000;
const MOST_WORDS = 6;
const MOST_LETTERS = 60;
const NAME = "svc-voices";
const STORE = "spoken";

const asked = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// Opened for each use, so that the log-out of another tab can delete it.
async function store(mode, use) {
  const opening = indexedDB.open(NAME, 1);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore(STORE, { keyPath: "id", autoIncrement: true }).createIndex("owner", "owner");
  };
  const database = await asked(opening);
  database.onversionchange = () => database.close();
  try {
    return await use(database.transaction(STORE, mode).objectStore(STORE));
  } finally {
    database.close();
  }
}

// Oldest first.
function spokenBy(owner) {
  return store("readonly", (spoken) => asked(spoken.index("owner").getAll(owner)));
}

function keep(owner, one) {
  const size = one.sounds.reduce((sum, sound) => sum + sound.size, 0);
  return store("readwrite", async (spoken) => {
    await asked(spoken.add({ ...one, owner, sounds: size > MOST_BYTES ? [] : one.sounds }));
    const keys = await asked(spoken.index("owner").getAllKeys(owner));
    for (const key of keys.slice(0, -MOST)) await asked(spoken.delete(key));
  });
}

function forget(owner) {
  return store("readwrite", async (spoken) => {
    for (const key of await asked(spoken.index("owner").getAllKeys(owner))) await asked(spoken.delete(key));
  });
}

// "ava-the-morning-train.wav": the voice and the first words.
export function fileName(voice, text, ending) {
  const words = text.replace(/\[[^\]]*\]|<[^>]*>/g, " ").match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  const named = [voice, ...words.slice(0, MOST_WORDS)].join("-").toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, "-");
  return `${named.slice(0, MOST_LETTERS).replace(/-$/, "")}.${ending}`;
}

// One file: the sound itself, or a WAV of several.
async function fileOf({ sounds, ending }, rate) {
  if (sounds.length === 1) return { sound: sounds[0], ending };
  const parts = [];
  for (const sound of sounds) {
    parts.push(samplesOf((await decoded(await sound.arrayBuffer(), rate)).getChannelData(0)));
  }
  return { sound: wavOf(parts, rate), ending: "wav" };
}

const LIKE = { dateStyle: "medium", timeStyle: "short" };

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// The list on the page. `sampler` plays; `silence` stops every sound of the page; `use` takes a text over.
export class History {
  constructor({ section, sampler, owner, rate, silence, use }) {
    Object.assign(this, { section, sampler, owner, rate, silence, use, queue: null, playing: null });
    this.list = section.querySelector("ol");
    section.querySelector("[data-forgets]").addEventListener("click", () => this.clear());
  }

  async add(one) {
    await keep(this.owner, one);
    await this.show();
  }

  async clear() {
    this.silence();
    await forget(this.owner);
    await this.show();
  }

  async show() {
    const kept = await spokenBy(this.owner);
    this.section.hidden = !kept.length;
    this.list.replaceChildren(...kept.reverse().map((one) => this.line(one)));
  }

  line(one) {
    const short = one.text.length > 60 ? `${one.text.slice(0, 60)}…` : one.text;
    const name = `“${short}”`;
    const play = element("button", { type: "button", className: "round", textContent: "▶" });
    play.setAttribute("aria-label", `Play ${name}`);
    play.addEventListener("click", () => this.play(one, play));
    const save = element("button", { type: "button", className: "quiet", textContent: "Download" });
    save.setAttribute("aria-label", `Download ${name}`);
    save.addEventListener("click", () => this.download(one));
    const again = element("button", { type: "button", className: "quiet", textContent: "Use" });
    again.setAttribute("aria-label", `Use ${name}`);
    again.addEventListener("click", () => this.use(one));
    const has = one.sounds.length > 0;
    const facts = [one.name, new Date(one.at).toLocaleString("en-GB", LIKE), ...(has ? [] : ["too long to keep its sound"])];
    const words = element("span", { className: "voice-name" },
      element("span", { className: "spoken-text", textContent: one.text, title: one.text }),
      element("span", { className: "hint", textContent: facts.join(" · ") }));
    if (!has) play.disabled = save.disabled = true;
    return element("li", {}, play, words, again, save);
  }

  play(one, button) {
    const again = this.playing === button;
    this.silence();
    if (again) return;
    this.playing = button;
    button.dataset.state = "plays";
    button.textContent = "■";
    this.queue = new Queue(this.sampler, (at) => { if (at < 0) this.stop(); });
    for (const sound of one.sounds) this.queue.add(URL.createObjectURL(sound));
  }

  stop() {
    const { playing, queue } = this;
    this.playing = this.queue = null;
    queue?.stop();
    if (!playing) return;
    playing.dataset.state = "";
    playing.textContent = "▶";
  }

  async download(one) {
    const { sound, ending } = await fileOf(one, this.rate);
    const address = URL.createObjectURL(sound);
    element("a", { href: address, download: fileName(one.name, one.text, ending) }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  }
}
