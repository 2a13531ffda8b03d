// Sends access answers to gates before they ask. A caller with a new sandbox usually calls its toolbox next.
// The gate can then admit that call without asking control. It uses such an answer like one that it has asked for,
// and for as long. A gate that did not get the answer asks control.
import type { FastifyRequest } from 'fastify'
import { readBearer, readOrganizationHeader } from '#src/control/auth/bearer.ts'
import { isRunning } from '#src/control/sandboxes/record/lifecycle.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { type AccessQuestion, keyOfQuestion } from '#src/wire/access.ts'
import { accessOf } from './access.ts'
import type { GateParts } from './gate-links.ts'

/** Returns the access question that a gate will ask if the caller of this request next calls the sandbox's toolbox. */
const questionAfter = ({ headers }: FastifyRequest, sandboxId: string): AccessQuestion | undefined => {
  const token = readBearer(headers)
  if (token === undefined) return undefined
  const organizationId = readOrganizationHeader(headers)
  const credential = { kind: 'bearer', token, ...(organizationId === undefined ? {} : { organizationId }) } as const
  return { sandboxIdOrName: sandboxId, credentials: [credential], countsAsActivity: true }
}

/** Tells the gates that the caller of this request may call the sandbox. Call this before the reply is sent. */
export const answerAhead = (
  { gates, links, tickets }: Pick<GateParts, 'gates' | 'links' | 'tickets'>,
  request: FastifyRequest,
  row: SandboxRow,
  at: Date,
): void => {
  const place = links.placeOf(row.runner_id)
  if (gates.size === 0 || place === undefined || !isRunning(row.state, row.desired_state)) return
  const question = questionAfter(request, row.id)
  if (question === undefined) return
  const found = { ...place, openedBy: 'bearer', isBearerOurs: true, warnsVisitors: false } as const
  const access = accessOf({ tickets }, row, { kind: 'toolbox' }, found)
  gates.tell({ type: 'access', question: keyOfQuestion(question), access, at: at.getTime() }, place.gate?.id)
}
