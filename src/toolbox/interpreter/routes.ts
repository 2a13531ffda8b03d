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
    summary: 'Creates a context: a separate Python process that keeps its variables between executions.',
    body: CreateContextRequest,
    bodyOptional: true,
    replies: { 200: InterpreterContext },
    run: ({ sandbox, body }) => createContext(sandbox, body ?? {}),
  }),
  route({
    method: 'GET',
    path: '/process/interpreter/context',
    needs: 'sandbox',
    summary: 'Lists the contexts, except the default context.',
    replies: { 200: ContextList },
    run: async ({ sandbox }) => ({ contexts: await listContexts(sandbox) }),
  }),
  route({
    method: 'DELETE',
    path: '/process/interpreter/context/:contextId',
    needs: 'sandbox',
    summary: 'Deletes a context and kills its processes. The default context cannot be deleted.',
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
    summary:
      'Executes Python code in a context over a WebSocket: the client sends one request, and the server sends the results.',
    replies: { 101: null },
    run: () => {
      throw new Problem('bad_request', 'This URL must be opened as a WebSocket.')
    },
    socket: (socket, { sandbox }) => execute(socket, sandbox),
  }),
]
