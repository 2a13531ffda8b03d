import type { FastifyRequest } from 'fastify'
import { readIdempotencyKey } from '#src/http/idempotency-key.ts'
import { longestText } from '#src/http/shapes.ts'
import { route } from '../sandbox.ts'
import { entrypointId, getEntrypoint, pourEntrypoint, readEntrypointLogs } from './entrypoint.ts'
import { hangUpOf } from './hang-up.ts'
import { sendLogs } from './logs.ts'
import { wantsMarks } from './marked-logs.ts'
import {
  Command,
  CommandParams,
  CreateSessionRequest,
  ExecAccepted,
  ExecRequest,
  ExecResult,
  InputRequest,
  Logs,
  LogsQuery,
  Session,
  SessionList,
  SessionParams,
} from './schemas.ts'
import {
  createSession,
  deleteSession,
  getCommand,
  getSession,
  lastLineOf,
  listSessions,
  pourLogs,
  readLogs,
  runCommand,
  sendInput,
  startCommand,
} from './service.ts'

/** Sends text/plain to old SDKs, with bytes that mark stdout and stderr (marked-logs.ts). Sends JSON to all other callers. */
const asWanted = async (
  request: FastifyRequest,
  read: (isMarked: boolean) => Promise<Logs>,
): Promise<Logs | string> => {
  const isMarked = wantsMarks(request)
  const logs = await read(isMarked)
  return isMarked ? logs.output : logs
}

/** Maximum size of a body: a command may have 1 MiB, and JSON may need six bytes for each byte of the command. */
const bodyLimit = longestText

export const sessionRoutes = [
  route({
    method: 'POST',
    path: '/process/session',
    needs: 'sandbox',
    summary: 'Starts a session: a shell that keeps its state from one command to the next.',
    body: CreateSessionRequest,
    replies: { 201: Session },
    run: ({ sandbox, body }) => createSession(sandbox, body.sessionId),
  }),
  route({
    method: 'GET',
    path: '/process/session',
    needs: 'sandbox',
    summary: 'Lists the sessions and their commands, including sessions whose shell has ended.',
    replies: { 200: SessionList },
    run: ({ sandbox }) => listSessions(sandbox),
  }),
  route({
    method: 'GET',
    path: '/process/session/entrypoint',
    needs: 'sandbox',
    summary:
      'Returns the session of the entrypoint, which runs at each start. Without an entrypoint, the session has no commands.',
    replies: { 200: Session },
    run: ({ sandbox }) => getEntrypoint(sandbox),
  }),
  route({
    method: 'GET',
    path: '/process/session/entrypoint/logs',
    needs: 'sandbox',
    summary:
      'Returns the output of the entrypoint so far. A WebSocket with `follow` also sends new output as it comes.',
    query: LogsQuery,
    replies: { 200: Logs },
    run: ({ sandbox, request, reply }) =>
      asWanted(request, (isMarked) => readEntrypointLogs(sandbox, hangUpOf(reply), isMarked)),
    socket: (socket, { sandbox, query }) =>
      void sendLogs(
        socket,
        (take, signal) => pourEntrypoint(sandbox, take, { follow: query.follow === true, signal }),
        () => lastLineOf(sandbox, { sessionId: entrypointId, commandId: '' }),
      ),
  }),
  route({
    method: 'GET',
    path: '/process/session/:sessionId',
    needs: 'sandbox',
    summary: 'Returns one session with its commands.',
    params: SessionParams,
    replies: { 200: Session },
    run: ({ sandbox, params }) => getSession(sandbox, params.sessionId),
  }),
  route({
    method: 'DELETE',
    path: '/process/session/:sessionId',
    needs: 'sandbox',
    summary: 'Deletes a session. Its processes get SIGTERM, and SIGKILL after five seconds.',
    params: SessionParams,
    replies: { 204: null },
    run: ({ sandbox, params }) => deleteSession(sandbox, params.sessionId),
  }),
  route({
    method: 'POST',
    path: '/process/session/:sessionId/exec',
    needs: 'sandbox',
    summary:
      'Runs a command in a session after all earlier commands. Waits for the end of the command, except with `runAsync`.',
    params: SessionParams,
    body: ExecRequest,
    bodyLimit,
    replies: { 200: ExecResult, 202: ExecAccepted },
    run: async (call) => {
      const { sandbox, request, reply } = call
      const { sessionId } = call.params
      const idempotencyKey = readIdempotencyKey(request.headers['idempotency-key'])
      const isAsync = call.body.runAsync === true || call.body.async === true
      if (isAsync)
        return reply.status(202).send({ cmdId: await startCommand(sandbox, sessionId, call, idempotencyKey) })
      return await runCommand(sandbox, sessionId, call, {
        idempotencyKey,
        signal: hangUpOf(reply),
        isMarked: wantsMarks(request),
      })
    },
  }),
  route({
    method: 'GET',
    path: '/process/session/:sessionId/command/:commandId',
    needs: 'sandbox',
    summary: 'Returns one command of a session, with the exit code if the command has ended.',
    params: CommandParams,
    replies: { 200: Command },
    run: ({ sandbox, params }) => getCommand(sandbox, params),
  }),
  route({
    method: 'POST',
    path: '/process/session/:sessionId/command/:commandId/input',
    needs: 'sandbox',
    summary: 'Sends one or more lines of input to a command that was started with `runAsync`.',
    params: CommandParams,
    body: InputRequest,
    bodyLimit,
    replies: { 204: null },
    run: ({ sandbox, params, body }) => sendInput(sandbox, params, body.data),
  }),
  route({
    method: 'GET',
    path: '/process/session/:sessionId/command/:commandId/logs',
    needs: 'sandbox',
    summary: 'Returns the output of a command so far. A WebSocket with `follow` also sends new output as it comes.',
    params: CommandParams,
    query: LogsQuery,
    replies: { 200: Logs },
    run: ({ sandbox, params, request, reply }) =>
      asWanted(request, (isMarked) => readLogs(sandbox, params, hangUpOf(reply), isMarked)),
    admit: async ({ sandbox, params }) => void (await getCommand(sandbox, params)),
    socket: (socket, { sandbox, params, query }) =>
      void sendLogs(
        socket,
        (take, signal) => pourLogs(sandbox, params, take, { follow: query.follow === true, signal }),
        () => lastLineOf(sandbox, params),
      ),
  }),
]
