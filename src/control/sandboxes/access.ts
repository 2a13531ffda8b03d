// What the proxy asks before it forwards anything: may this caller reach this sandbox, and where is it?
import Type, { type Static } from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { findRunnerAddress } from '#src/control/runners/service.ts'
import { Problem } from '#src/problems.ts'
import type { Access, AccessQuestion } from '#src/wire/access.ts'
import type { SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { findByPreviewToken, findSandbox, touch } from './store.ts'

const activityEverySeconds = 10

const Question = Type.Object({
  sandboxIdOrName: Type.String({ minLength: 1, maxLength: 255 }),
  credential: Type.Union([
    Type.Object({
      kind: Type.Literal('bearer'),
      token: Type.String({ maxLength: 8192 }),
      organizationId: Type.Optional(Type.String()),
    }),
    Type.Object({ kind: Type.Literal('preview-token'), token: Type.String({ maxLength: 8192 }) }),
    Type.Object({ kind: Type.Literal('none') }),
  ]),
  countsAsActivity: Type.Boolean(),
})

const AccessAnswer = Type.Object({
  sandboxId: Type.String(),
  organizationId: Type.String(),
  runnerAddress: Type.String(),
  isStarted: Type.Boolean(),
  state: Type.String(),
})

/** Any key of the organization opens its toolboxes; a stranger's key sees nothing there (contract/toolbox.md §1). */
const findFor = async (
  { database, callers }: SandboxParts,
  { sandboxIdOrName, credential }: AccessQuestion,
): Promise<SandboxRow | undefined> => {
  if (credential.kind === 'none') throw new Problem('unauthorized')
  if (credential.kind === 'preview-token') {
    const row = await findByPreviewToken(database.sql, credential.token)
    // The token proves one sandbox and says nothing about any other.
    if (row?.id !== sandboxIdOrName && row?.name !== sandboxIdOrName) throw new Problem('unauthorized')
    return row
  }
  const caller = await callers.find(credential.token)
  if (caller === undefined) throw new Problem('unauthorized')
  const { organizationId } = credential
  if (organizationId !== undefined && organizationId !== caller.organization.id) throw new Problem('not_found')
  return await findSandbox(database.sql, caller.organization.id, sandboxIdOrName)
}

export const answerAccess = async (parts: SandboxParts, question: AccessQuestion): Promise<Access> => {
  const row = await findFor(parts, question)
  if (!row) throw new Problem('not_found', 'There is no such sandbox.')
  const runnerAddress = row.runner_id === null ? null : await findRunnerAddress(parts.database.sql, row.runner_id)
  if (!runnerAddress) throw new Problem('bad_gateway')
  if (question.countsAsActivity) await touch(parts.database.sql, row, parts.clock.now(), activityEverySeconds)
  return {
    sandboxId: row.id,
    organizationId: row.organization_id,
    runnerAddress,
    isStarted: row.state === 'started',
    state: row.state,
  }
}

export const accessRoutes = (parts: SandboxParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/proxy/access',
    needs: 'proxy',
    summary: 'Whether a credential may reach a sandbox, and where its toolbox is.',
    body: Question,
    replies: { 200: AccessAnswer },
    run: ({ body }) => answerAccess(parts, asQuestion(body)),
  }),
]

const asQuestion = (body: Static<typeof Question>): AccessQuestion => body as AccessQuestion
