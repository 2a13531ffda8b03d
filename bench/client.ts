// An HTTP client that uses each connection for several calls, as the SDKs do.
import { Pool } from 'undici'
import type { Platform } from '#test/sandboxes/harness.ts'

export type Made = { id: string; state: string; toolboxProxyUrl: string; exitCode: number }

/** The fields of a sandbox that the client needs to call its toolbox. */
type Where = Pick<Made, 'id' | 'toolboxProxyUrl'>

export const openClient = (alcove: Platform) => {
  const api = new Pool(alcove.url, { connections: 128 })
  const pools = new Map<string, Pool>()
  const headers = { authorization: `Bearer ${alcove.key}`, 'content-type': 'application/json' }
  const ask = async (pool: Pool, method: 'POST' | 'DELETE', path: string, body?: string) => {
    const reply = await pool.request({ method, path, headers, ...(body === undefined ? {} : { body }) })
    const answer = await reply.body.text()
    if (reply.statusCode !== 200) throw new Error(`${path}: ${reply.statusCode} ${answer}`)
    return JSON.parse(answer) as Made
  }
  const run = async (toolboxes: string, path: string, body: string) => {
    const { origin, pathname } = new URL(toolboxes)
    const pool = pools.get(origin) ?? new Pool(origin, { connections: 128 })
    pools.set(origin, pool)
    const { exitCode } = await ask(pool, 'POST', `${pathname}${path}`, body)
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`)
  }
  return {
    post: (path: string, body: object = {}) => ask(api, 'POST', `/api${path}`, JSON.stringify(body)),
    create: () => ask(api, 'POST', '/api/sandbox', '{}'),
    remove: (id: string) => ask(api, 'DELETE', `/api/sandbox/${id}`),
    execute: ({ id, toolboxProxyUrl }: Where, command = 'true') =>
      run(toolboxProxyUrl, `/${id}/process/execute`, JSON.stringify({ command })),
    executeInSession: ({ id, toolboxProxyUrl }: Where, session: string, command: string) =>
      run(toolboxProxyUrl, `/${id}/process/session/${session}/exec`, JSON.stringify({ command })),
    close: async () => {
      for (const pool of [api, ...pools.values()]) await pool.close()
    },
  }
}
