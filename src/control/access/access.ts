// Answers a gate's question before the gate forwards a call: may this caller reach this sandbox, and which runner has it?

import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { hashKey } from '#src/control/auth/secret.ts'
import { hasPreviewWarning } from '#src/control/organizations/service.ts'
import { isRunning } from '#src/control/sandboxes/record/lifecycle.ts'
import { previewHostLabel, type SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { findSandbox, findSandboxById, touch } from '#src/control/sandboxes/service.ts'
import { noSandbox, Problem } from '#src/problems.ts'
import {
  type Access,
  type AccessQuestion,
  type Credential,
  type OpenedBy,
  pathOfSignedFile,
  signedToken,
  toolboxPort,
} from '#src/wire/access.ts'
import { type Allowed, digestOfCall } from '#src/wire/ticket.ts'
import { placeOfGate } from '../runner-links.ts'
import type { RunningParts } from '../running.ts'
import { isSignedBy } from './file-signature.ts'
import type { GateParts } from './gate-links.ts'
import { findByPreviewToken } from './preview-tokens.ts'
import { findSigned } from './signed-previews.ts'
import { findBySshToken } from './ssh-tokens.ts'

const activityEverySeconds = 10

const Text = Type.String({ maxLength: 8192 })

const Question = Type.Object({
  sandboxIdOrName: Type.String({ minLength: 1, maxLength: 255 }),
  credentials: Type.Array(
    Type.Union([
      Type.Object({ kind: Type.Literal('bearer'), token: Text, organizationId: Type.Optional(Text) }),
      Type.Object({ kind: Type.Enum(['preview-header', 'preview-query', 'preview-cookie', 'ssh']), token: Text }),
      Type.Object({
        kind: Type.Literal('file-signature'),
        method: Text,
        path: Type.String({ maxLength: 65_536 }),
        expires: Text,
        signature: Text,
      }),
    ]),
    { maxItems: 16 },
  ),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
  countsAsActivity: Type.Boolean(),
  wasLetIn: Type.Optional(Type.Boolean()),
})

const AccessAnswer = Type.Object({
  ticket: Type.String(),
  sandboxId: Type.String(),
  organizationId: Type.String(),
  runnerAddress: Type.String(),
  gate: Type.Optional(Type.Object({ id: Type.String(), address: Type.Optional(Type.String()) })),
  silentSince: Type.Optional(Type.String()),
  isStarted: Type.Boolean(),
  state: Type.String(),
  leastGeneration: Type.Optional(Type.Integer()),
  openedBy: Type.String(),
  isBearerOurs: Type.Boolean(),
  warnsVisitors: Type.Boolean(),
  hostInside: Type.Optional(Type.Literal('localhost')),
})

const TicketKeysAnswer = Type.Object({ keys: Type.Array(Type.Object({ id: Type.String(), publicKey: Type.String() })) })

type OpenedPort = { row: SandboxRow; openedBy: OpenedBy; allowed: Allowed }

const isNamed = (row: SandboxRow | undefined, idOrName: string): row is SandboxRow =>
  row !== undefined && row.state !== 'destroyed' && (row.id === idOrName || row.name === idOrName)

/**
 * Returns the moment at which a signed URL must be valid. Undefined: its expiry is not checked, because an open
 * connection may outlive its URL.
 */
const judgedAt = ({ clock }: RunningParts, { wasLetIn }: AccessQuestion) => (wasLetIn ? undefined : clock.now())

/** Returns the calls that a credential allows: for a signed file URL one call, otherwise the whole toolbox or one port. */
const allowedTo = ({ port }: AccessQuestion, credential?: Credential): Allowed => {
  if (credential?.kind === 'file-signature') {
    const { method, path } = credential
    return { kind: 'call', digest: digestOfCall(method, pathOfSignedFile(method, path)) }
  }
  return port === undefined || port === toolboxPort ? { kind: 'toolbox' } : { kind: 'port', port }
}

/**
 * Returns the sandbox if this credential gives access to it.
 * `stranger`: the API key or JWT is valid, but its organization has no such sandbox.
 */
const tryCredential = async (
  parts: RunningParts,
  question: AccessQuestion,
  credential: Credential,
): Promise<SandboxRow | 'stranger' | undefined> => {
  const { sql } = parts.database
  const { sandboxIdOrName, port } = question
  switch (credential.kind) {
    case 'bearer': {
      // An API key, or a signed-in user, has access to all sandboxes of the organization.
      const holder = await parts.callers.find(credential.token)
      if (holder === undefined) return undefined
      const caller = await holder.in(credential.organizationId)
      if (caller === undefined) return 'stranger'
      return (await findSandbox(sql, caller.organization.id, sandboxIdOrName)) ?? 'stranger'
    }
    case 'ssh': {
      const opened =
        port === undefined ? await findBySshToken(sql, hashKey(credential.token), parts.clock.now()) : undefined
      return isNamed(opened?.sandbox, sandboxIdOrName) ? opened.sandbox : undefined
    }
    case 'file-signature': {
      // Only by id: the URL names no organization, and sandbox names are unique only within an organization.
      const row = port === undefined ? await findSandboxById(sql, sandboxIdOrName) : undefined
      if (row === undefined || row.state === 'destroyed') return undefined
      return isSignedBy(row.signing_key, credential, judgedAt(parts, question)) ? row : undefined
    }
    default: {
      // A preview token gives access only to the sandbox that it was made for.
      const row = await findByPreviewToken(sql, credential.token, parts.clock.now())
      return isNamed(row, sandboxIdOrName) ? row : undefined
    }
  }
}

/**
 * Finds the sandbox whose port a call may reach without a credential.
 * The call names a public sandbox, or the token of a signed URL. No toolbox is public.
 */
const findOpenPort = async (parts: RunningParts, question: AccessQuestion): Promise<OpenedPort | undefined> => {
  const { sql } = parts.database
  const { sandboxIdOrName, port } = question
  if (port === undefined) return undefined
  if (signedToken.test(sandboxIdOrName)) {
    const row = await findSigned(sql, hashKey(sandboxIdOrName), port, judgedAt(parts, question))
    if (row) return { row, openedBy: 'signed-preview', allowed: allowedTo(question) }
  }
  if (port === toolboxPort) return undefined
  const row = await findSandboxById(sql, sandboxIdOrName)
  const isOpen = row?.public && row.state !== 'destroyed'
  return isOpen ? { row, openedBy: 'public', allowed: { kind: 'port', port } } : undefined
}

const open = async (parts: RunningParts, question: AccessQuestion): Promise<OpenedPort> => {
  let isStranger = false
  for (const credential of question.credentials) {
    const found = await tryCredential(parts, question, credential)
    if (found === 'stranger') isStranger = true
    else if (found) return { row: found, openedBy: credential.kind, allowed: allowedTo(question, credential) }
  }
  const opened = await findOpenPort(parts, question)
  if (opened) return opened
  throw isStranger ? noSandbox(question.sandboxIdOrName) : new Problem('unauthorized')
}

const hasOurBearer = async ({ callers }: RunningParts, credentials: readonly Credential[]): Promise<boolean> => {
  const bearer = credentials.find(({ kind }) => kind === 'bearer')
  return bearer?.kind === 'bearer' && (await callers.find(bearer.token)) !== undefined
}

type AccessDetails = Pick<Access, 'runnerAddress' | 'gate' | 'openedBy' | 'isBearerOurs' | 'warnsVisitors'>

const gateOf = ({ runner_gate_id: id, runner_gate_address: address }: SandboxRow) =>
  placeOfGate(id ? { id, ...(address && { address }) } : undefined)

/** Returns the reply to a gate that asks for access to a sandbox. */
export const accessOf = (
  { tickets }: Pick<GateParts, 'tickets'>,
  row: SandboxRow,
  allowed: Allowed,
  found: AccessDetails,
): Access => ({
  ticket: tickets.sign({
    sandboxId: row.id,
    organizationId: row.organization_id,
    ...(found.runnerAddress !== '' && found.runnerAddress.length <= 256 && { runnerAddress: found.runnerAddress }),
    ...(found.gate !== undefined && { gateId: found.gate.id }),
    allowed,
  }),
  sandboxId: row.id,
  organizationId: row.organization_id,
  isStarted: isRunning(row.state, row.desired_state),
  state: row.state,
  ...(row.least_generation === null ? {} : { leastGeneration: row.least_generation }),
  ...(row.runner_is_silent && row.runner_heartbeat_at ? { silentSince: row.runner_heartbeat_at.toISOString() } : {}),
  ...(row.labels[previewHostLabel] === 'localhost' ? { hostInside: 'localhost' } : {}),
  ...found,
})

/** Answers the access question of a gate. `proxyRegionId`: the region of a proxy that an organization runs itself. */
const answerAccess = async (parts: GateParts, question: AccessQuestion, proxyRegionId?: string): Promise<Access> => {
  const { sql } = parts.database
  const { row, openedBy, allowed } = await open(parts, question)
  if (proxyRegionId !== undefined && row.region_id !== proxyRegionId) throw noSandbox(question.sandboxIdOrName)
  // A sandbox without a runner needs no address, because it does not run.
  const runnerAddress = row.runner_address ?? ''
  const isUp = isRunning(row.state, row.desired_state) || row.state === 'paused'
  if (isUp && runnerAddress === '') throw new Problem('bad_gateway')
  if (question.countsAsActivity) await touch(sql, row, parts.clock.now(), activityEverySeconds)
  return accessOf(parts, row, allowed, {
    runnerAddress,
    ...gateOf(row),
    openedBy,
    isBearerOurs: await hasOurBearer(parts, question.credentials),
    warnsVisitors: question.port !== undefined && (await hasPreviewWarning(sql, row.organization_id)),
  })
}

export const accessRoutes = (parts: GateParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/proxy/access',
    needs: 'proxy',
    summary:
      'Decides whether a call may reach a sandbox. If so, returns a signed ticket and the address of the runner.',
    body: Question,
    replies: { 200: AccessAnswer },
    run: ({ body, proxyRegionId }) => answerAccess(parts, body as AccessQuestion, proxyRegionId),
  }),
  route({
    method: 'GET',
    path: '/proxy/ticket-keys',
    needs: 'proxy',
    summary: 'Lists the public keys with which gates currently verify tickets.',
    replies: { 200: TicketKeysAnswer },
    run: async () => ({ keys: await parts.tickets.listKeys() }),
  }),
  route({
    method: 'GET',
    path: '/proxy/link',
    needs: 'proxy',
    summary: 'Opens a gate’s WebSocket, over which control sends access answers before the gate asks for them.',
    replies: { 101: null },
    run: () => {
      throw new Problem('bad_request', 'This is a WebSocket: it needs an upgrade.')
    },
    socket: (socket, { proxyRegionId, gateId }) => {
      // A region's proxy gets no answers ahead, because its key can be revoked while this WebSocket is open.
      if (proxyRegionId === undefined) parts.gates.add(socket, gateId)
    },
  }),
]
