// Answers gates before they ask: whoever has just been given a sandbox calls into it next, and that call then need not wait
// for our answer. It is what the gate would be told, for the same second; a gate that does not hear it asks.
import type { FastifyRequest } from 'fastify'
import { readBearer, readOrganizationHeader } from '#src/control/auth/bearer.ts'
import { isRunning } from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { type AccessQuestion, keyOfQuestion } from '#src/wire/access.ts'
import { accessOf } from './access.ts'
import type { GateParts } from './gate-links.ts'

/** The question that the gate will make from a call with this request's credential. */
const questionAfter = ({ headers }: FastifyRequest, sandboxId: string): AccessQuestion | undefined => {
  const token = readBearer(headers)
  if (token === undefined) return undefined
  const organizationId = readOrganizationHeader(headers)
  const credential = { kind: 'bearer', token, ...(organizationId === undefined ? {} : { organizationId }) } as const
  return { sandboxIdOrName: sandboxId, credentials: [credential], countsAsActivity: true }
}

/** Tells the gates, before the caller of this request has the answer, that the caller may enter the sandbox that it names. */
export const answerAhead = (
  { gates, links, tickets }: Pick<GateParts, 'gates' | 'links' | 'tickets'>,
  request: FastifyRequest,
  row: SandboxRow,
  at: Date,
): void => {
  const runnerAddress = links.addressOf(row.runner_id)
  if (gates.size === 0 || runnerAddress === undefined || !isRunning(row.state, row.desired_state)) return
  const question = questionAfter(request, row.id)
  if (question === undefined) return
  const found = { runnerAddress, openedBy: 'bearer', isBearerOurs: true, warnsVisitors: false } as const
  const access = accessOf({ tickets }, row, { kind: 'toolbox' }, found)
  gates.tell({ type: 'access', question: keyOfQuestion(question), access, at: at.getTime() })
}
