// The conversation of tests/support/clients/conversation.py with the openai package.
//
// Usage: node conversation.mjs PART < script.json
// The script holds {base_url, api_key, model} and the lines of the conversation; what the client
// saw is printed as JSON, for the Python test to compare with the ledger.

import { readFileSync } from 'node:fs'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'

const script = JSON.parse(readFileSync(0, 'utf8'))
const { model } = script
const client = new OpenAI({ baseURL: script.base_url, apiKey: script.api_key, maxRetries: 0 })

const user = (content) => ({ role: 'user', content })

const seenWhole = (completion) => ({
  request_id: completion._request_id,
  model: completion.model,
  input: completion.usage.prompt_tokens,
  output: completion.usage.completion_tokens,
  streamed: false,
})

const seenStream = (chunks) => ({
  request_id: chunks[0].request_id,
  model: chunks.at(-1).model,
  input: chunks.at(-1).usage.prompt_tokens,
  output: chunks.at(-1).usage.completion_tokens,
  streamed: true,
})

async function read (stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return chunks
}

const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')

const failure = (error) => ({
  name: error.constructor.name,
  status: error.status ?? null,
  type: error.type ?? null,
  param: error.param ?? null,
  code: error.code ?? null,
  request_id: error.requestID ?? null,
  retry_after_ms: error.headers?.get('retry-after-ms') ?? null,
})

async function failureOf (work) {
  try {
    await work()
  } catch (error) {
    return failure(error)
  }
  throw new Error('the request did not fail')
}

const parts = {
  async turns () {
    const [firstLine, secondLine] = script.turns
    const first = await read(await client.chat.completions.create({
      model, messages: [user(firstLine)], stream: true, stream_options: { include_usage: true },
    }))
    const messages = [user(firstLine), { role: 'assistant', content: textOf(first) }, user(secondLine)]
    const second = await client.chat.completions.create({ model, messages })
    return {
      texts: [textOf(first), second.choices[0].message.content],
      usages: first.map(({ usage }) => usage !== null),
      seen: [seenStream(first), seenWhole(second)],
    }
  },

  async runner () {
    const tools = [{
      type: 'function',
      function: {
        ...script.tool.function,
        parse: JSON.parse,
        function: () => script.tool_result,
      },
    }]
    const runner = client.chat.completions.runTools({
      model, messages: [user(script.question)], tools, stream: true,
    })
    const text = await runner.finalContent()
    return { text, total: await runner.totalUsage() }
  },

  async parse () {
    const reading = z.object({ city: z.string(), degrees: z.number(), note: z.string().nullable() })
    const request = {
      model,
      messages: [user(script.reading_question)],
      response_format: zodResponseFormat(reading, 'reading'),
    }
    const whole = await client.chat.completions.parse(request)
    const stream = client.chat.completions.stream(request)
    const chunks = []
    stream.on('chunk', (chunk) => chunks.push(chunk))
    const final = await stream.finalChatCompletion()
    return {
      parsed: [whole.choices[0].message.parsed, final.choices[0].message.parsed],
      seen: [seenWhole(whole), seenStream(chunks)],
    }
  },

  async errors () {
    const ask = (fields, options) => () => client.chat.completions.create(
      { model, messages: [user(script.turns[0])], ...fields }, options)
    const stranger = new OpenAI({ baseURL: script.base_url, apiKey: 'svc_live_unknown', maxRetries: 0 })
    return {
      stranger: await failureOf(() => stranger.models.list()),
      model: await failureOf(ask({ model: 'acme/demo-9b' })),
      field: await failureOf(ask({ temperature: 3 })),
      backend: await failureOf(ask({ messages: [user('[[sim fault=status=500]] Hello')] })),
    }
  },

  async limit () {
    return { limit: await failureOf(() => client.chat.completions.create({ model, messages: [user(script.turns[0])] })) }
  },

  async broken () {
    const stream = await client.chat.completions.create({
      model, messages: [user('[[sim tokens=20 fault=error_frame@3]] Go on.')], stream: true,
    })
    let text = ''
    const error = await failureOf(async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
    })
    return { text, error }
  },
}

console.log(JSON.stringify(await parts[process.argv[2]]()))
