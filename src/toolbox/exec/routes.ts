import { route } from '../sandbox.ts'
import { deadlineOf } from './deadline.ts'
import { ExecuteRequest, ExecuteResponse } from './schemas.ts'
import { checkCommand, defaultTimeoutSeconds, execute } from './service.ts'

export const execRoutes = [
  route({
    method: 'POST',
    path: '/process/execute',
    needs: 'sandbox',
    summary: 'Runs a shell command and answers its exit code and output.',
    body: ExecuteRequest,
    bodyLimit: 8 * 1024 * 1024,
    replies: { 200: ExecuteResponse },
    run: async ({ sandbox, body, reply }) => {
      checkCommand(body)
      using deadline = deadlineOf(reply, body.timeout ?? defaultTimeoutSeconds)
      return await execute(sandbox, body, deadline)
    },
  }),
]
