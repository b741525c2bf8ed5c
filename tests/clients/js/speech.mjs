// Speaks through the openai package and through the AI SDK as each is documented.
// argv: the client. stdin: base_url, api_key, voice, text. stdout: what came, as JSON.
import { createOpenAI } from '@ai-sdk/openai'
import { experimental_generateSpeech as generateSpeech } from 'ai'
import { createHash } from 'node:crypto'
import { text as readText } from 'node:stream/consumers'
import OpenAI from 'openai'

const FORMATS = ['wav', 'mp3', 'pcm', 'opus', 'flac']
const script = JSON.parse(await readText(process.stdin))

function seen(bytes) {
  const content = Buffer.from(bytes)
  return {
    content: content.toString('base64'),
    sha256: createHash('sha256').update(content).digest('hex'),
  }
}

const clients = {
  async openai() {
    const client = new OpenAI({ baseURL: script.base_url, apiKey: script.api_key, maxRetries: 0 })
    const request = { model: 'tts-1', voice: script.voice, input: script.text }
    const files = {}
    for (const format of FORMATS) {
      const answer = await client.audio.speech.create({ ...request, response_format: format })
      files[format] = seen(await answer.arrayBuffer())
    }
    const streamed = await client.audio.speech.create({ ...request, response_format: 'pcm' })
    let pieces = 0
    for await (const piece of streamed.body) pieces += piece.length > 0
    const fast = await client.audio.speech.create({ ...request, response_format: 'wav', speed: 2 })
    const voice = await client.models.retrieve(script.voice)
    return { files, pieces, fast: seen(await fast.arrayBuffer()), voice: voice.id }
  },

  async 'ai-sdk'() {
    const provider = createOpenAI({ baseURL: script.base_url, apiKey: script.api_key })
    const model = provider.speech('tts-1')
    const files = {}
    for (const outputFormat of ['wav', 'mp3', 'flac']) {
      const { audio } = await generateSpeech({
        model, text: script.text, voice: script.voice, outputFormat,
      })
      files[outputFormat] = seen(audio.uint8Array)
    }
    const { audio } = await generateSpeech({
      model, text: script.text, voice: script.voice, outputFormat: 'wav', speed: 2,
      instructions: 'Speak clearly.',
    })
    return { files, fast: seen(audio.uint8Array) }
  },
}

console.log(JSON.stringify(await clients[process.argv[2]]()))
