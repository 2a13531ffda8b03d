// The actions of the list of sandboxes, on one sandbox or on many.
import { answerOf, control, type SandboxRow, type SandboxState } from '../../api/client.ts'
import { toast, toastError } from '../../ui/toast.tsx'

const pathOf = (sandboxId: string) => ({ params: { path: { sandboxIdOrName: sandboxId } } })

export const actions = {
  start: {
    label: 'Start',
    done: 'started',
    run: (id: string) => answerOf(control.POST('/sandbox/{sandboxIdOrName}/start', pathOf(id) as never)),
    from: ['stopped', 'paused', 'archived'],
  },
  stop: {
    label: 'Stop',
    done: 'stopped',
    run: (id: string) => answerOf(control.POST('/sandbox/{sandboxIdOrName}/stop', pathOf(id) as never)),
    from: ['started', 'paused'],
  },
  pause: {
    label: 'Pause',
    done: 'paused',
    run: (id: string) => answerOf(control.POST('/sandbox/{sandboxIdOrName}/pause', pathOf(id) as never)),
    from: ['started'],
  },
  archive: {
    label: 'Archive',
    done: 'being archived',
    run: (id: string) => answerOf(control.POST('/sandbox/{sandboxIdOrName}/archive', pathOf(id) as never)),
    from: ['stopped'],
  },
  recover: {
    label: 'Recover',
    done: 'recovered',
    run: (id: string, query: { skipStart?: boolean } = {}) =>
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/recover', {
          params: { path: { sandboxIdOrName: id }, query },
        } as never),
      ),
    from: ['error'],
  },
  delete: {
    label: 'Delete',
    done: 'deleted',
    run: (id: string) => answerOf(control.DELETE('/sandbox/{sandboxIdOrName}', pathOf(id) as never)),
    from: undefined,
  },
} as const satisfies Record<
  string,
  { label: string; done: string; run: (id: string) => Promise<unknown>; from: readonly SandboxState[] | undefined }
>

export type ActionName = keyof typeof actions

type Stateful = Pick<SandboxRow, 'state' | 'recoverable'>

/** Whether an action is possible in the sandbox's present state. */
export const isPossible = (name: ActionName, { state, recoverable }: Stateful): boolean => {
  const from: readonly SandboxState[] | undefined = actions[name].from
  if (from === undefined) return state !== 'destroying' && state !== 'destroyed'
  return from.includes(state) && (name !== 'recover' || recoverable === true)
}

/** Maximum number of calls of one bulk action that run at the same time. */
const atOnce = 6

/**
 * Performs an action on many sandboxes, even after failures, and shows for how many it has succeeded. `onProgress` gets the number
 * of sandboxes that are done.
 */
export const runOnMany = async (
  name: ActionName,
  rows: readonly SandboxRow[],
  onProgress: (done: number) => void = () => {},
): Promise<void> => {
  const { run, done } = actions[name]
  const waiting = [...rows]
  const errors: unknown[] = []
  let finished = 0
  const work = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      try {
        await run(row.id)
      } catch (error) {
        errors.push(error)
      }
      finished += 1
      onProgress(finished)
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, rows.length) }, work))
  const succeeded = rows.length - errors.length
  if (succeeded > 0) toast(`${succeeded} ${succeeded === 1 ? 'sandbox' : 'sandboxes'} ${done}`)
  if (errors.length > 0) toastError(`${errors.length} of ${rows.length} failed`, errors[0])
}
