// On a gate's request, changes the environment variables of a sandbox. They are stored only in the sandbox's row.
// They survive a stop, a move and a crash of any program. No program inside the sandbox can forge them.
import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { changeVariables } from '#src/control/sandboxes/record/variables.ts'
import { lockSandbox, writeVariables } from '#src/control/sandboxes/service.ts'
import { textMap } from '#src/http/shapes.ts'
import { noSandbox, Problem } from '#src/problems.ts'
import type { VariableAnswer, VariableQuestion } from '#src/wire/access.ts'
import type { GateParts } from './gate-links.ts'

const longestValue = 1024 * 1024
const Name = Type.String({ minLength: 1, maxLength: 65_536 })

const Question = Type.Object({
  ticket: Type.String({ maxLength: 2048 }),
  inherited: textMap({ names: 65_536, values: longestValue, most: 2000 }),
  set: textMap({ names: 65_536, values: longestValue, most: 1000 }),
  unset: Type.Array(Name, { maxItems: 1000 }),
  unsetValuePrefix: Type.Optional(Type.String({ maxLength: longestValue })),
})

/** The gate must send the ticket of the user's call: the key of the gate alone gives no right to change a sandbox. */
const change = async (
  { database, clock, changes, tickets }: GateParts,
  { ticket: text, inherited, ...change }: VariableQuestion,
  proxyRegionId?: string,
): Promise<VariableAnswer> => {
  const ticket = await tickets.read(text)
  if (ticket?.allowed.kind !== 'toolbox') throw new Problem('unauthorized')
  const { sandboxId, organizationId } = ticket
  const { row, isChanged } = await database.transaction(async (transaction) => {
    const found = await lockSandbox(transaction, sandboxId)
    if (proxyRegionId !== undefined && found.region_id !== proxyRegionId) throw noSandbox(sandboxId)
    if (found.organization_id !== organizationId) throw noSandbox(sandboxId)
    const variables = changeVariables(found, inherited, change)
    if (variables === undefined) return { row: found, isChanged: false }
    return { row: await writeVariables(transaction, found, variables, clock.now()), isChanged: true }
  })
  if (isChanged) changes.renew(row)
  return { generation: row.generation }
}

export const variableRoutes = (parts: GateParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/proxy/env',
    needs: 'proxy',
    summary: 'Changes a sandbox’s environment variables. Processes that start later get the new variables.',
    body: Question,
    bodyLimit: 4 * 1024 * 1024,
    replies: { 200: Type.Object({ generation: Type.Integer() }) },
    run: ({ body, proxyRegionId }) => change(parts, body, proxyRegionId),
  }),
]
