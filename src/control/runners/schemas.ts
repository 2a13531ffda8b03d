// The request and reply shapes of the operator's routes for runners.
import Type, { type Static } from 'typebox'
import { orNull } from '#src/http/shapes.ts'

export const RunnerId = Type.Object({ runnerId: Type.String({ minLength: 1, maxLength: 64 }) })

export const CreateRunner = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 64, description: 'Its name, in small letters, digits and dashes.' }),
  regionId: Type.Optional(Type.String({ maxLength: 255, description: 'Where it will be. Default: `local`.' })),
})
export type CreateRunner = Static<typeof CreateRunner>

export const NewRunner = Type.Object({
  id: Type.String(),
  regionId: Type.String(),
  token: Type.String({ description: 'What it joins with. Shown here and never again.' }),
})

export const UpdateRunner = Type.Object({
  isDrained: Type.Boolean({ description: 'It gets no new sandboxes; those that it has go on.' }),
})

export const RemoveRunner = Type.Object({
  force: Type.Optional(Type.Boolean({ description: 'Although there are sandboxes on it, which are lost.' })),
})

export const Runner = Type.Object({
  id: Type.String(),
  regionId: Type.String(),
  state: Type.Enum(['initializing', 'ready', 'disabled', 'unresponsive']),
  cpu: Type.Number(),
  memoryGiB: Type.Number(),
  diskGiB: Type.Number(),
  version: Type.String(),
  lastHeartbeatAt: orNull(Type.String()),
  sandboxes: Type.Integer({ description: 'Those that have their disk there.' }),
  warm: Type.Integer({ description: 'Of these, those started ahead that nobody has claimed.' }),
})

/** The reply when a runner asks which runner it is. */
export const OwnRunner = Type.Object({ id: Type.String(), regionId: Type.String() })
