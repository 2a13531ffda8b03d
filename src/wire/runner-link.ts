// What control and a runner say to each other.
//
// The truth is level-triggered: `GET /sandbox/for-runner` lists every sandbox of the runner with what it should be, and
// `PUT /sandbox/{id}/state` reports what it is. The link, one WebSocket opened by the runner at `/runners/link`, says the
// same things sooner; losing it costs latency only. Everything here may arrive twice or late: `generation` decides.
import type { SandboxState } from './sandbox-state.ts'

/** What a runner can bring about. `paused` and `archived` come with the verbs that need them. */
export type Target = 'started' | 'stopped' | 'destroyed'

export type NetworkPolicy = {
  blockAll: boolean
  /** IPv4 CIDRs; `null`: no list, everything public is allowed. */
  allowList: readonly string[] | null
}

/** What one sandbox should be. `generation` grows with every change of it; a runner ignores older ones. */
export type Assignment = {
  sandboxId: string
  organizationId: string
  regionId: string
  name: string
  generation: number
  target: Target
  /** How processes are asked to end on the way to `stopped`; after 10 s of SIGTERM comes SIGKILL. */
  signal: 'SIGTERM' | 'SIGKILL'
  /** Names the image below the runner's pool. */
  image: string
  /** The snapshot's name, for the sandbox's own environment. */
  snapshot: string
  user: string
  env: Record<string, string>
  /** Of `code-run` when the call names none. */
  language: string
  cpu: number
  memoryGiB: number
  diskGiB: number
  network: NetworkPolicy
}

/** Why a sandbox is as it is, in parts a timeline can show. */
export type Cause = {
  exitCode?: number
  signal?: string
  oomKilled?: boolean
  /** A sentence for a person. */
  detail?: string
}

export type Report = {
  sandboxId: string
  generation: number
  state: Extract<SandboxState, 'started' | 'stopped' | 'destroyed' | 'error'>
  errorReason?: string
  recoverable?: boolean
  cause?: Cause
}

export type RunnerCapabilities = {
  cpu: number
  memoryGiB: number
  diskGiB: number
  runtime: string
  runtimeVersion: string
  hardDiskLimit: boolean
}

/** Runner → control. `hello` comes first and again whenever the runner's images change. */
export type FromRunner =
  | { type: 'hello'; address: string; images: readonly string[]; capabilities: RunnerCapabilities; version: string }
  | { type: 'report'; report: Report }
  | { type: 'alive' }

/** Control → runner. `list` asks the runner to take the whole list anew. */
export type ToRunner =
  | { type: 'welcome'; runnerId: string; heartbeatSeconds: number }
  | { type: 'assign'; assignment: Assignment }
  | { type: 'list' }
