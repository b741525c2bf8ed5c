// Sound in the browser: WAV files made of samples, and players of what arrives in pieces.

const HEADER_BYTES = 44;

// A WAV file of 16-bit samples in one channel; `pcm` are Uint8Arrays.
export function wavOf(pcm, rate) {
  const size = pcm.reduce((sum, part) => sum + part.byteLength, 0);
  const header = new DataView(new ArrayBuffer(HEADER_BYTES));
  const name = (at, text) => [...text].forEach((letter, index) => header.setUint8(at + index, letter.charCodeAt(0)));
  name(0, "RIFF");
  header.setUint32(4, HEADER_BYTES - 8 + size, true);
  name(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, 1, true);
  header.setUint32(24, rate, true);
  header.setUint32(28, rate * 2, true);
  header.setUint16(32, 2, true);
  header.setUint16(34, 16, true);
  name(36, "data");
  header.setUint32(40, size, true);
  return new Blob([header, ...pcm], { type: "audio/wav" });
}

// 16-bit samples of numbers from -1 to 1.
export function samplesOf(numbers) {
  const samples = new Int16Array(numbers.length);
  for (let at = 0; at < numbers.length; at += 1) {
    samples[at] = Math.round(Math.max(-1, Math.min(1, numbers[at])) * 32767);
  }
  return new Uint8Array(samples.buffer);
}

// Decodes any sound file that the browser reads; `rate` is that of the result.
export function decoded(bytes, rate) {
  return new OfflineAudioContext(1, 1, rate).decodeAudioData(bytes);
}

// Plays samples as they arrive, one after the other.
export class StreamPlayer {
  constructor(rate) {
    this.context = new AudioContext({ sampleRate: rate });
    this.rate = rate;
    this.next = 0;
    this.odd = null;
    this.last = null;
  }

  add(bytes) {
    // A read may end inside a sample.
    const joined = this.odd === null ? bytes : new Uint8Array([this.odd, ...bytes]);
    this.odd = joined.length % 2 ? joined[joined.length - 1] : null;
    const view = new DataView(joined.buffer, joined.byteOffset, joined.length - (joined.length % 2));
    const count = view.byteLength / 2;
    if (!count) return;
    const buffer = this.context.createBuffer(1, count, this.rate);
    const channel = buffer.getChannelData(0);
    for (let at = 0; at < count; at += 1) channel[at] = view.getInt16(at * 2, true) / 32768;
    const source = this.context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.context.destination);
    this.next = Math.max(this.next, this.context.currentTime + 0.05);
    source.start(this.next);
    this.next += buffer.duration;
    this.last = source;
  }

  // Resolves when everything was played, or after `stop`.
  finished() {
    if (!this.last || this.context.state === "closed") return Promise.resolve();
    return new Promise((resolve) => {
      this.last.addEventListener("ended", resolve);
      this.context.addEventListener("statechange", () => { if (this.context.state === "closed") resolve(); });
    });
  }

  stop() {
    if (this.context.state !== "closed") this.context.close();
  }

  halt() {
    this.stop();
  }
}

// Plays files in their order in one audio element, each as soon as those before it have ended.
export class Queue {
  constructor(audio, onTurn) {
    this.audio = audio;
    this.onTurn = onTurn;
    this.addresses = [];
    this.at = -1;
    this.waits = true;
    this.ended = () => this.play(this.at + 1);
    audio.addEventListener("ended", this.ended);
  }

  add(address) {
    this.addresses.push(address);
    if (this.waits) this.play(this.addresses.length - 1);
  }

  play(index) {
    this.waits = index >= this.addresses.length;
    this.onTurn(this.waits ? -1 : index);
    if (this.waits) return;
    this.at = index;
    this.audio.src = this.addresses[index];
    // A browser that plays nothing by itself leaves the element's own button.
    this.audio.play().catch(() => {});
  }

  // Stops playing; each file can still be chosen.
  halt() {
    this.waits = false;
    this.audio.pause();
    this.onTurn(-1);
  }

  stop() {
    this.audio.removeEventListener("ended", this.ended);
    this.audio.pause();
    for (const address of this.addresses) URL.revokeObjectURL(address);
  }
}
