// A simulated language model for the guides' AI agents, with OpenAI's Responses API. It asks the agent for one tool call, and then
// answers with the tool's result.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export type ToolCall = { tool: string; input: Record<string, unknown> }

type Request = {
  model: string
  stream?: boolean
  tools?: { name?: string }[]
  input: { type?: string; output?: unknown }[]
}

const itemFor = (call: ToolCall, input: Request['input']) => {
  const results = input.filter(({ type }) => type === 'function_call_output')
  const common = { id: randomUUID(), status: 'completed' }
  if (results.length === 0) {
    const { tool: name, input: given } = call
    return { ...common, type: 'function_call', call_id: randomUUID(), name, arguments: JSON.stringify(given) }
  }
  const text = `The tool said: ${JSON.stringify(results.at(-1)?.output)}`
  return { ...common, type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] }
}

/** Returns the body of the answer to a request, or undefined if this model cannot answer the request. */
const answerTo = (call: ToolCall, { model, stream = false, tools = [], input }: Request) => {
  if (stream || !tools.some(({ name }) => name === call.tool)) return
  const usage = {
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  }
  const output = [itemFor(call, input)]
  return { id: randomUUID(), object: 'response', created_at: 1, status: 'completed', model, output, usage }
}

export type ScriptedModel = { url: string; [Symbol.asyncDispose]: () => Promise<void> }

/**
 * Starts a server that answers like a model, with the tool call `call`. An AI agent that does not have the called tool, or asks for
 * a stream, gets an error.
 */
export const startModel = async (call: ToolCall): Promise<ScriptedModel> => {
  const server = createServer(async (request, response) => {
    const body = request.url === '/v1/responses' ? answerTo(call, (await json(request)) as Request) : undefined
    response.writeHead(body === undefined ? 400 : 200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(body ?? { error: { message: `${request.method} ${request.url} is not in the script` } }),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}
