import { longestText } from '#src/http/shapes.ts'
import { deadlineOf } from '#src/toolbox/running/deadline.ts'
import { route } from '../sandbox.ts'
import { CodeRunRequest, CodeRunResponse } from './schemas.ts'
import { checkCode, runCode } from './service.ts'

export const codeRunRoutes = [
  route({
    method: 'POST',
    path: '/process/code-run',
    needs: 'sandbox',
    summary: 'Runs Python, JavaScript or TypeScript code in a new process and returns its exit code and output.',
    body: CodeRunRequest,
    bodyLimit: longestText,
    replies: { 200: CodeRunResponse },
    run: async (call) => {
      checkCode(call.body)
      using deadline = deadlineOf(call.reply, { seconds: call.body.timeout ?? 0 })
      return await runCode(call.sandbox, call, deadline, call.compiler)
    },
  }),
]
