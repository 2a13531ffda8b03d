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

/** Whether a thing in this state is on its way to another one. */
export const isMoving = (state: string): boolean => settled[state] === undefined

/** The state of a thing, such as a sandbox, with a colour for its kind. States that do not last pulse. */
export const StateBadge = ({ state }: { state: SandboxState | (string & {}) }) => (
  <span className={`badge ${settled[state] ?? 'info moving'}`}>{state.replaceAll('_', ' ')}</span>
)
