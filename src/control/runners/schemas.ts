// The request and reply schemas of the operator's routes for runners.
import Type, { type Static } from 'typebox'

export const RunnerId = Type.Object({ runnerId: Type.String({ minLength: 1, maxLength: 64 }) })

export const CreateRunner = Type.Object({
  name: Type.String({
    minLength: 1,
    maxLength: 64,
    description: 'Small letters, digits and dashes. It is the id too.',
  }),
  regionId: Type.Optional(Type.String({ maxLength: 255, description: 'Default: `local`.' })),
})
export type CreateRunner = Static<typeof CreateRunner>

export const NewRunner = Type.Object({
  id: Type.String(),
  regionId: Type.String({ description: 'Alcove only.' }),
  apiKey: Type.String({ description: 'The runner joins with it. Shown here and never again.' }),
})

export const UpdateScheduling = Type.Object({
  unschedulable: Type.Boolean({ description: 'If true, it gets no new sandboxes; those that it has go on.' }),
  move: Type.Optional(
    Type.Boolean({
      description:
        'With `unschedulable`: its sandboxes are moved to other runners of the region through the object store. Those that run are stopped and started again there. Default: false, which also ends a move under way (Alcove only).',
    }),
  ),
})

export const Emptying = Type.Object({
  isEmptied: Type.Boolean({ description: 'Its sandboxes are being moved.' }),
  running: Type.Integer({ description: 'Sandboxes whose processes end when they move.' }),
  left: Type.Integer({ description: 'Sandboxes that are still on it.' }),
  moving: Type.Integer({ description: 'Of these, those that are on their way into the object store.' }),
  staying: Type.Array(Type.Object({ sandboxId: Type.String(), reason: Type.String() }), {
    description: 'Those that cannot be moved, at most 100, each with the reason.',
  }),
})

export type UpdateScheduling = Static<typeof UpdateScheduling>

export const RemoveRunner = Type.Object({
  force: Type.Optional(Type.Boolean({ description: 'Although there are sandboxes on it, which are lost.' })),
})

export const RunnersQuery = Type.Object({ regionId: Type.Optional(Type.String({ maxLength: 255 })) })

export const Runner = Type.Object({
  id: Type.String(),
  name: Type.String(),
  region: Type.String(),
  state: Type.Enum(['initializing', 'ready', 'disabled', 'unresponsive']),
  unschedulable: Type.Boolean({ description: 'It gets no new sandboxes.' }),
  cpu: Type.Number(),
  memory: Type.Number({ description: 'In GiB.' }),
  disk: Type.Number({ description: 'In GiB.' }),
  currentStartedSandboxes: Type.Integer(),
  currentAllocatedCpu: Type.Number(),
  currentAllocatedMemoryGiB: Type.Number(),
  currentAllocatedDiskGiB: Type.Number(),
  sandboxes: Type.Integer({ description: 'Those that have their disk there (Alcove only).' }),
  warm: Type.Integer({ description: 'Of these, those started ahead that nobody has claimed (Alcove only).' }),
  isEmptied: Type.Boolean({ description: 'Its sandboxes are moved to other runners (Alcove only).' }),
  silentSince: Type.Optional(
    Type.String({ description: 'When it was last heard, if it is silent: it gets nothing new (Alcove only).' }),
  ),
  lostAt: Type.Optional(Type.String({ description: 'When it was given up, until it is heard again (Alcove only).' })),
  givenUp: Type.Integer({
    description: 'Sandboxes on it that are `error`, if it is lost. They may come back with it (Alcove only).',
  }),
  leftovers: Type.Integer({
    description:
      'Sandboxes that were given up and can be started elsewhere. It removes what it has of them (Alcove only).',
  }),
  tags: Type.Array(Type.String(), { description: 'Always empty.' }),
  runnerClass: Type.Enum(['container']),
  version: Type.String(),
  apiVersion: Type.String({ description: 'Always `0`.' }),
  lastChecked: Type.Optional(Type.String({ description: 'When it was last heard of. Absent: never.' })),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})

/** The reply to a runner that asks for its own id and region. */
export const OwnRunner = Type.Object({ id: Type.String(), regionId: Type.String() })
