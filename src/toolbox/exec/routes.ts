import { readIdempotencyKey } from '#src/http/idempotency-key.ts'
import { longestText } from '#src/http/shapes.ts'
import { deadlineOf, type Limit } from '#src/toolbox/running/deadline.ts'
import { sdkVersionHeader } from '#src/wire/access.ts'
import { route, type ToolboxContext } from '../sandbox.ts'
import { answersOf } from './repeated-commands.ts'
import { ExecuteRequest, ExecuteResponse } from './schemas.ts'
import { checkCommand, executeGiven } from './service.ts'

type Call = Pick<ToolboxContext, 'executeTimeoutSeconds'> & {
  body: ExecuteRequest
  request: { headers: Record<string, string | string[] | undefined> }
}

/** SDKs promise that a command without a timeout may run forever. Other callers get the default, 10 s (src/gate/config.ts). */
const limitOf = ({ body, request, executeTimeoutSeconds }: Call): Limit => {
  if (typeof body.timeout === 'number') return { seconds: body.timeout }
  return request.headers[sdkVersionHeader] ? { seconds: 0 } : { seconds: executeTimeoutSeconds, isDefault: true }
}

export const execRoutes = [
  route({
    method: 'POST',
    path: '/process/execute',
    needs: 'sandbox',
    summary: 'Runs a shell command and returns its exit code and output.',
    body: ExecuteRequest,
    bodyLimit: longestText,
    replies: { 200: ExecuteResponse },
    run: async (call) => {
      const { sandbox, request, reply } = call
      checkCommand(call.body)
      const limit = limitOf(call)
      const run = async (waiting?: typeof reply) => {
        using deadline = deadlineOf(waiting, limit)
        return await executeGiven(sandbox, call, deadline)
      }
      const runOnce = (key: string) => answersOf(sandbox.id).once(key, call.body, () => run())
      const key = readIdempotencyKey(request.headers['idempotency-key'])
      // With an idempotency key, the command continues after a lost connection, and its answer is stored, so that the
      // caller can ask again.
      return await (key === undefined ? run(reply) : runOnce(key))
    },
  }),
]
