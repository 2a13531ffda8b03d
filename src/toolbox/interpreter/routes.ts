import { Problem } from '#src/problems.ts'
import { route } from '../sandbox.ts'
import { createContext, deleteContext, listContexts } from './contexts.ts'
import { execute } from './execute.ts'
import { ContextList, ContextParams, CreateContextRequest, InterpreterContext, Message } from './schemas.ts'

export const interpreterRoutes = [
  route({
    method: 'POST',
    path: '/process/interpreter/context',
    needs: 'sandbox',
    summary: 'Makes a context: a Python of its own that keeps its state between executions.',
    body: CreateContextRequest,
    bodyOptional: true,
    replies: { 200: InterpreterContext },
    run: ({ sandbox, body }) => createContext(sandbox, body ?? {}),
  }),
  route({
    method: 'GET',
    path: '/process/interpreter/context',
    needs: 'sandbox',
    summary: 'Lists the contexts that were made; the default one is not among them.',
    replies: { 200: ContextList },
    run: async ({ sandbox }) => ({ contexts: await listContexts(sandbox) }),
  }),
  route({
    method: 'DELETE',
    path: '/process/interpreter/context/:contextId',
    needs: 'sandbox',
    summary: 'Ends a context and whatever runs in it.',
    params: ContextParams,
    replies: { 200: Message },
    run: async ({ sandbox, params }) => {
      await deleteContext(sandbox, params.contextId)
      return { message: 'The context was deleted.' }
    },
  }),
  route({
    method: 'GET',
    path: '/process/interpreter/execute',
    needs: 'sandbox',
    summary: 'Executes Python code in a context (WebSocket): the first message asks, the others answer.',
    replies: { 101: null },
    run: () => {
      throw new Problem('bad_request', 'This is to be opened as a WebSocket.')
    },
    socket: (socket, { sandbox }) => execute(socket, sandbox),
  }),
]
