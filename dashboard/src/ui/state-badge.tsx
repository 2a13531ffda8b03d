import type { SandboxState } from '../api/client.ts'

type Look = 'ok' | 'info' | 'warn' | 'danger' | ''

const settled: Partial<Record<string, Look>> = {
  started: 'ok',
  active: 'ok',
  ready: 'ok',
  stopped: '',
  archived: '',
  inactive: '',
  destroyed: '',
  deleted: '',
  disabled: '',
  paused: 'warn',
  unknown: 'warn',
  unresponsive: 'warn',
  error: 'danger',
  build_failed: 'danger',
}

/** Whether the state is temporary, such as `starting`. */
export const isMoving = (state: string): boolean => settled[state] === undefined

/** Shows the state of a sandbox or another object in a colour. A temporary state, such as `starting`, pulses. */
export const StateBadge = ({ state }: { state: SandboxState | (string & {}) }) => (
  <span className={`badge ${settled[state] ?? 'info moving'}`}>{state.replaceAll('_', ' ')}</span>
)
