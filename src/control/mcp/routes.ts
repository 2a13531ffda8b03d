// The endpoint `/mcp`: tools for models by the Model Context Protocol. It keeps no state between calls.
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { longestText } from '#src/http/shapes.ts'
import { version } from '#src/kit/version.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { OwnApi, ToolError } from './own-api.ts'
import { type Tool, tools } from './tools.ts'

const instructions =
  'Tools to create isolated Linux sandboxes, and to run commands and code and change files in them. Create a sandbox first; the other tools take its id or name.'

const resultOf = async (api: OwnApi, { run }: Tool, input: unknown) => {
  try {
    return { content: [{ type: 'text' as const, text: await run(api, input as never) }] }
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    return { content: [{ type: 'text' as const, text: error.message }], isError: true }
  }
}

type Prepared = { tool: Tool; inputSchema: ReturnType<typeof fromJsonSchema> }

/** Converts the input schemas of the tools, once for all calls, because every call makes a new MCP server. */
const prepareTools = (): Prepared[] =>
  tools.map((tool) => ({ tool, inputSchema: fromJsonSchema(JSON.parse(JSON.stringify(tool.input))) }))

const serverFor = (api: OwnApi, prepared: readonly Prepared[]): McpServer => {
  const server = new McpServer({ name: 'alcove', version }, { instructions, maxToolInputElements: 10_000 })
  for (const { tool, inputSchema } of prepared) {
    const { name, description, effect } = tool
    server.registerTool(
      name,
      {
        ...{ description, inputSchema },
        annotations: { readOnlyHint: effect === 'reads', destructiveHint: effect === 'destroys' },
      },
      (given) => resultOf(api, tool, given),
    )
  }
  return server
}

export const mcpRoutes = ({ settings }: Pick<Parts, 'settings'>): ControlRoute[] => {
  let prepared: Prepared[] | undefined
  const answer = async (request: FastifyRequest, reply: FastifyReply, body: unknown) => {
    const ended = new AbortController()
    reply.raw.once('close', () => ended.abort())
    // Clients cannot subscribe to changes of the tools, which do not change while a server runs.
    prepared ??= prepareTools()
    const known = prepared
    const api = new OwnApi(request, settings.proxyUrl, ended.signal)
    const handler = createMcpHandler(() => serverFor(api, known), { maxSubscriptions: 0 })
    reply.raw.once('close', () => void handler.close())
    const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
      typeof value === 'string' ? [[name, value]] : [],
    )
    const asked = new Request(new URL(request.url, settings.publicUrl), { method: request.method, headers })
    const response = await handler.fetch(asked, { parsedBody: body })
    reply.status(response.status)
    for (const [name, value] of response.headers) reply.header(name, value)
    return response.body === null ? undefined : Readable.fromWeb(response.body as ReadableStream)
  }
  const posting = route({
    method: 'POST',
    path: '/mcp',
    needs: 'member',
    summary:
      'Offers the tools of this server to AI models through the Model Context Protocol (Streamable HTTP, without sessions).',
    body: Type.Unknown(),
    bodyLimit: longestText,
    replies: { 200: Type.Unknown(), 202: null },
    run: ({ request, reply, body }) => answer(request, reply, body),
  })
  const withoutSessions = (['GET', 'DELETE'] as const).map((method) =>
    route({
      ...{ method, path: '/mcp', needs: 'member' },
      summary: 'Answers 405, which tells clients of the Model Context Protocol that this server has no sessions.',
      replies: { 200: null },
      run: ({ request, reply }) => answer(request, reply, undefined),
    }),
  )
  return [posting, ...withoutSessions]
}
