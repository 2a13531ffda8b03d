import { readIdempotencyKey } from '#src/http/idempotency-key.ts'
import { route } from '../sandbox.ts'
import { deadlineOf } from './deadline.ts'
import { answersOf } from './once.ts'
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
    run: async ({ sandbox, body, request, reply }) => {
      checkCommand(body)
      const run = async (waiting?: typeof reply) => {
        using deadline = deadlineOf(waiting, body.timeout ?? defaultTimeoutSeconds)
        return await execute(sandbox, body, deadline)
      }
      const key = readIdempotencyKey(request.headers['idempotency-key'])
      // Whoever may ask again may also have been cut off: the command goes on, and its answer is kept.
      return await (key === undefined ? run(reply) : answersOf(sandbox.id).once(key, body, () => run()))
    },
  }),
]
