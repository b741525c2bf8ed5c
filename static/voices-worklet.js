// Runs in the thread of the sound: passes on what the microphone hears.

class Recorder extends AudioWorkletProcessor {
  process([input]) {
    // The browser uses the same memory for the next samples.
    if (input[0]) this.port.postMessage(input[0].slice());
    return true;
  }
}

registerProcessor("recorder", Recorder);
