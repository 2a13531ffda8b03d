// The request and reply schemas of the operator's routes for runners.
import Type, { type Static } from 'typebox'

export const RunnerId = Type.Object({ runnerId: Type.String({ minLength: 1, maxLength: 64 }) })

export const CreateRunner = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Name and id of the runner. Lowercase letters, digits and dashes; no dash at either end.',
  }),
  regionId: Type.Optional(Type.String({ maxLength: 255, description: 'A shared region. Default: `local`.' })),
})
export type CreateRunner = Static<typeof CreateRunner>

export const NewRunner = Type.Object({
  id: Type.String(),
  regionId: Type.String({ description: 'Region of the runner (Alcove only).' }),
  apiKey: Type.String({ description: 'Token with which the runner joins. Only this reply contains it.' }),
})

export const UpdateScheduling = Type.Object({
  unschedulable: Type.Boolean({
    description: 'If true, the runner gets no new sandboxes; those on it continue. If false, draining ends.',
  }),
  move: Type.Optional(
    Type.Boolean({
      description:
        'If true, the sandboxes are moved to other runners of the region through the object store. Running sandboxes are stopped, and started again there. Only together with `unschedulable`. Default: false, which also ends a move in progress (Alcove only).',
    }),
  ),
})

export const Emptying = Type.Object({
  isEmptied: Type.Boolean({ description: 'Whether the sandboxes of the runner are being moved to other runners.' }),
  running: Type.Integer({
    description:
      'Number of started and paused sandboxes, without unclaimed warm ones. Their processes end when the sandboxes move.',
  }),
  left: Type.Integer({ description: 'Number of sandboxes that are still on the runner.' }),
  moving: Type.Integer({ description: 'Number of sandboxes in `left` that are being moved into the object store.' }),
  staying: Type.Array(Type.Object({ sandboxId: Type.String(), reason: Type.String() }), {
    description: 'Sandboxes that cannot be moved, each with the reason; at most 100.',
  }),
})

export type UpdateScheduling = Static<typeof UpdateScheduling>

export const RemoveRunner = Type.Object({
  force: Type.Optional(
    Type.Boolean({
      description:
        'If true, also removes a runner with sandboxes or volumes; their data on it is lost. Default: false.',
    }),
  ),
})

export const RunnersQuery = Type.Object({ regionId: Type.Optional(Type.String({ maxLength: 255 })) })

export const Runner = Type.Object({
  id: Type.String(),
  name: Type.String(),
  region: Type.String(),
  state: Type.Enum(['initializing', 'ready', 'disabled', 'unresponsive']),
  unschedulable: Type.Boolean({ description: 'Whether the runner is drained: it gets no new sandboxes.' }),
  cpu: Type.Number(),
  memory: Type.Number({ description: 'Memory in GiB.' }),
  disk: Type.Number({ description: 'Disk space in GiB.' }),
  currentStartedSandboxes: Type.Integer(),
  currentAllocatedCpu: Type.Number(),
  currentAllocatedMemoryGiB: Type.Number(),
  currentAllocatedDiskGiB: Type.Number(),
  sandboxes: Type.Integer({ description: 'Number of sandboxes whose disks are on the runner (Alcove only).' }),
  warm: Type.Integer({
    description: 'Number of these sandboxes that were started ahead and that nobody has claimed (Alcove only).',
  }),
  isEmptied: Type.Boolean({
    description: 'Whether the sandboxes of the runner are being moved to other runners (Alcove only).',
  }),
  silentSince: Type.Optional(
    Type.String({
      description:
        'Time of the last heartbeat of a silent runner. A silent runner gets nothing new. Absent: not silent (Alcove only).',
    }),
  ),
  lostAt: Type.Optional(
    Type.String({
      description: 'Time when the runner was declared lost. Absent: not lost, or heard again since then (Alcove only).',
    }),
  ),
  givenUp: Type.Integer({
    description:
      'Number of sandboxes in state `error` on a lost runner; otherwise 0. They may come back when the runner does (Alcove only).',
  }),
  leftovers: Type.Integer({
    description:
      'Number of sandboxes that were given up on this runner and can start on another. When this runner is back, it removes what it still has of them (Alcove only).',
  }),
  tags: Type.Array(Type.String(), { description: 'Always empty.' }),
  runnerClass: Type.Enum(['container']),
  version: Type.String(),
  apiVersion: Type.String({ description: 'Always `0`.' }),
  lastChecked: Type.Optional(Type.String({ description: 'Time of the last heartbeat. Absent: there was none yet.' })),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})

/** The reply to a runner that asks for its own id and region. */
export const OwnRunner = Type.Object({ id: Type.String(), regionId: Type.String() })
