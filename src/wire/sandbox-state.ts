// The names of a sandbox's states, as messages and the API use them. Which state may follow which is defined only in
// control/sandboxes/record/lifecycle.ts.

export const sandboxStates = [
  'creating',
  'restoring',
  'destroyed',
  'destroying',
  'started',
  'stopped',
  'starting',
  'stopping',
  'error',
  'build_failed',
  'pending_build',
  'building_snapshot',
  'unknown',
  'pulling_snapshot',
  'archived',
  'archiving',
  'resizing',
  'snapshotting',
  'forking',
  'pausing',
  'paused',
  'resuming',
] as const

export type SandboxState = (typeof sandboxStates)[number]

export const desiredStates = ['destroyed', 'started', 'stopped', 'resized', 'archived', 'paused'] as const

export type DesiredState = (typeof desiredStates)[number]
