import { readIdempotencyKey } from '#src/http/idempotency-key.ts'
import { route } from '../sandbox.ts'
import { deadlineOf } from './deadline.ts'
import { answersOf } from './once.ts'
import { ExecuteRequest, ExecuteResponse } from './schemas.ts'
import { checkCommand, defaultTimeoutSeconds, executeGiven } from './service.ts'

export const execRoutes = [
  route({
    method: 'POST',
    path: '/process/execute',
    needs: 'sandbox',
    summary: 'Runs a shell command and answers its exit code and output.',
    body: ExecuteRequest,
    bodyLimit: 8 * 1024 * 1024,
    replies: { 200: ExecuteResponse },
    run: async (call) => {
      const { sandbox, request, reply } = call
      checkCommand(call.body)
      const run = async (waiting?: typeof reply) => {
        using deadline = deadlineOf(waiting, call.body.timeout ?? defaultTimeoutSeconds)
        return await executeGiven(sandbox, call, deadline)
      }
      const runOnce = (key: string) => answersOf(sandbox.id).once(key, call.body, () => run())
      const key = readIdempotencyKey(request.headers['idempotency-key'])
      // Whoever may ask again may also have been cut off: the command goes on, and its answer is kept.
      return await (key === undefined ? run(reply) : runOnce(key))
    },
  }),
]
