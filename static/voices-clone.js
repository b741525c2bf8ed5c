// Makes a clone: a clip of the microphone or of a file, as the WAV that the gateway takes.

import { decoded, samplesOf, wavOf } from "./voices-sound.js";

const form = document.getElementById("clone-form");
const element = (id) => document.getElementById(id);
const shortest = Number(form?.dataset.shortest);
const longest = Number(form?.dataset.longest);
const FILE_RATE = 48000;
const worklet = new URL("./voices-worklet.js", import.meta.url);
let clip = null;
let recording = null;

// Takes samples of one channel as the clip; what is too long is cut.
function take(numbers, rate) {
  const seconds = numbers.length / rate;
  clip = null;
  element("clip").hidden = true;
  element("recorded").textContent = "";
  if (seconds < shortest) {
    element("clip-problem").textContent = `This is ${seconds.toFixed(1)} seconds long. At least ${shortest} are needed.`;
    return;
  }
  element("clip-problem").textContent = "";
  clip = wavOf([samplesOf(numbers.subarray(0, Math.floor(longest * rate)))], rate);
  const player = element("clip");
  if (player.src) URL.revokeObjectURL(player.src);
  player.src = URL.createObjectURL(clip);
  player.hidden = false;
  const used = Math.min(seconds, longest).toFixed(1);
  element("recorded").textContent = seconds > longest ? `The first ${longest} of ${seconds.toFixed(1)} s are used` : `${used} s`;
}

// The mean of all channels.
function mixed(buffer) {
  const sum = new Float32Array(buffer.length);
  for (let channel = 0; channel < buffer.numberOfChannels; channel += 1) {
    const data = buffer.getChannelData(channel);
    for (let at = 0; at < sum.length; at += 1) sum[at] += data[at] / buffer.numberOfChannels;
  }
  return sum;
}

async function readFile() {
  const [file] = element("file").files;
  if (!file) return;
  try {
    take(mixed(await decoded(await file.arrayBuffer(), FILE_RATE)), FILE_RATE);
  } catch {
    clip = null;
    element("clip").hidden = true;
    element("recorded").textContent = "";
    element("clip-problem").textContent = "This browser cannot read the file as sound. Try a WAV, MP3 or M4A.";
  }
}

function refusal(error) {
  if (error.name === "NotAllowedError") return "The browser was not allowed to use the microphone. Allow it for this page, or choose a file.";
  if (error.name === "NotFoundError") return "No microphone was found. Choose a file instead.";
  return `The microphone could not be used (${error.name}). Choose a file instead.`;
}

async function record() {
  if (recording) {
    recording.stop();
    return;
  }
  element("clip-problem").textContent = "";
  if (!navigator.mediaDevices) {
    // Browsers hide the microphone from pages over plain http.
    element("clip-problem").textContent = "Recording needs this page over https. Choose a file instead.";
    return;
  }
  // A clone needs the voice as it is, not as it is made fit for a call.
  const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  let stream = null;
  let context = null;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio });
    context = new AudioContext();
    await context.audioWorklet.addModule(worklet);
  } catch (error) {
    stream?.getTracks().forEach((track) => track.stop());
    context?.close();
    element("clip-problem").textContent = refusal(error);
    return;
  }
  const parts = [];
  let count = 0;
  const source = context.createMediaStreamSource(stream);
  const node = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
  recording = {
    stop() {
      if (recording !== this) return;
      recording = null;
      node.port.onmessage = null;
      stream.getTracks().forEach((track) => track.stop());
      const { sampleRate } = context;
      context.close();
      showRecording(false);
      const whole = new Float32Array(count);
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      take(whole, sampleRate);
    },
  };
  const mine = recording;
  node.port.onmessage = ({ data }) => {
    parts.push(data);
    count += data.length;
    const seconds = count / context.sampleRate;
    element("level").value = Math.max(element("level").value * 0.9, ...data.map(Math.abs));
    element("recorded").textContent = `${Math.floor(seconds)} of ${longest} s`;
    if (seconds >= longest) mine.stop();
  };
  source.connect(node);
  showRecording(true);
}

function showRecording(on) {
  element("record").classList.toggle("recording", on);
  element("record-label").textContent = on ? "Stop" : "Record";
  element("level").hidden = !on;
  element("reading").hidden = !on;
  element("file").disabled = on;
  if (on) {
    element("file").value = "";
    element("clip").hidden = true;
  }
}

function dataUrlOf(sound) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(sound);
  });
}

async function make(event) {
  event.preventDefault();
  element("clone-problem").textContent = "";
  if (!clip) {
    element("clip-problem").textContent ||= "Record a clip or choose a file first.";
    element("record").focus();
    return;
  }
  element("make").disabled = true;
  element("making").textContent = "Measuring the voice …";
  try {
    const body = { name: element("name").value, audio_b64: await dataUrlOf(clip), consent: element("consent").checked };
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrftoken": form.elements.csrfmiddlewaretoken.value },
      body: JSON.stringify(body),
    });
    const made = await answer.json();
    if (!answer.ok) throw new Error(made.error.message);
    location.assign(`${location.pathname}?voice=${encodeURIComponent(made.id)}`);
  } catch (error) {
    const readable = error instanceof SyntaxError ? "The gateway did not answer as expected. Try again." : error.message;
    element("clone-problem").textContent = readable;
    element("make").disabled = false;
    element("making").textContent = "";
  }
}

if (form) {
  element("record").addEventListener("click", record);
  element("file").addEventListener("change", readFile);
  form.addEventListener("submit", make);
}
