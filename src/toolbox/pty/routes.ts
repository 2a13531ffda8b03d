import type { IncomingMessage } from 'node:http'
import { Problem } from '#src/problems.ts'
import { route } from '../sandbox.ts'
import { connect } from './connect.ts'
import { type Pty, viewOf } from './record.ts'
import {
  CreateConnectQuery,
  CreatedPty,
  CreatePtyRequest,
  Message,
  PtyInfo,
  PtyList,
  PtyParams,
  ResizeRequest,
} from './schemas.ts'
import { checkNewPty, createPty, deletePty, getPty, listPtys, resizePty } from './service.ts'
import { exitControl, readEnvs } from './subprotocols.ts'

/** The terminal that the endpoint `create-connect` made before the upgrade, or the error that prevented it. */
const outcomes = new WeakMap<IncomingMessage, { pty: Pty } | { error: unknown }>()

/**
 * Creates the terminal before the WebSocket upgrade, so that a connected client finds the terminal in lists. A failure is sent over
 * the WebSocket, because clients show no HTTP error of a refused upgrade.
 */
const makeBefore = async (request: IncomingMessage, make: () => Promise<Pty>): Promise<void> => {
  try {
    outcomes.set(request, { pty: await make() })
  } catch (error) {
    outcomes.set(request, { error })
  }
}

const madeBefore = async (request: IncomingMessage): Promise<Pty> => {
  const outcome = outcomes.get(request)
  if (outcome === undefined) throw new Error('a terminal was not made before its upgrade')
  if ('error' in outcome) throw outcome.error
  return outcome.pty
}

const needsUpgrade = () => {
  throw new Problem('bad_request', 'This URL must be opened as a WebSocket.')
}

export const ptyRoutes = [
  route({
    method: 'POST',
    path: '/process/pty',
    needs: 'sandbox',
    summary: 'Creates a terminal with a login shell. The shell continues when all clients have disconnected.',
    body: CreatePtyRequest,
    replies: { 201: CreatedPty },
    run: async ({ sandbox, body }) => {
      await checkNewPty(sandbox, body)
      const info = viewOf(await createPty(sandbox, body))
      return { ...info, sessionId: info.id }
    },
  }),
  route({
    method: 'GET',
    path: '/process/pty',
    needs: 'sandbox',
    summary: 'Lists the terminals, except those whose shell has ended.',
    replies: { 200: PtyList },
    run: async ({ sandbox }) => ({ sessions: await listPtys(sandbox) }),
  }),
  route({
    method: 'GET',
    path: '/process/pty/create-connect',
    needs: 'sandbox',
    summary: 'Creates a terminal and connects to the terminal over a WebSocket.',
    query: CreateConnectQuery,
    replies: { 101: null },
    run: needsUpgrade,
    subprotocol: exitControl,
    admit: async ({ sandbox, query, request }) => {
      const wanted = { ...query, envs: readEnvs(request.raw) }
      await makeBefore(request.raw, async () => {
        await checkNewPty(sandbox, wanted)
        return await createPty(sandbox, wanted)
      })
    },
    socket: (socket, { sandbox, request }) => connect(socket, sandbox, () => madeBefore(request.raw)),
  }),
  route({
    method: 'GET',
    path: '/process/pty/:sessionId',
    needs: 'sandbox',
    summary: 'Returns the state, size and variables of one terminal.',
    params: PtyParams,
    replies: { 200: PtyInfo },
    run: async ({ sandbox, params }) => viewOf(await getPty(sandbox, params.sessionId)),
  }),
  route({
    method: 'DELETE',
    path: '/process/pty/:sessionId',
    needs: 'sandbox',
    summary: 'Kills the shell of a terminal and all processes that the shell started.',
    params: PtyParams,
    replies: { 200: Message },
    run: async ({ sandbox, params }) => {
      await deletePty(sandbox, params.sessionId)
      return { message: 'The PTY session was deleted.' }
    },
  }),
  route({
    method: 'POST',
    path: '/process/pty/:sessionId/resize',
    needs: 'sandbox',
    summary: 'Sets the numbers of columns and rows of a terminal.',
    params: PtyParams,
    body: ResizeRequest,
    replies: { 200: PtyInfo },
    run: ({ sandbox, params, body }) => resizePty(sandbox, params.sessionId, body),
  }),
  route({
    method: 'GET',
    path: '/process/pty/:sessionId/connect',
    needs: 'sandbox',
    summary: 'Connects to a terminal over a WebSocket. At most 32 clients can share the terminal.',
    params: PtyParams,
    replies: { 101: null },
    run: needsUpgrade,
    subprotocol: exitControl,
    socket: (socket, { sandbox, params }) => connect(socket, sandbox, () => getPty(sandbox, params.sessionId)),
  }),
]
