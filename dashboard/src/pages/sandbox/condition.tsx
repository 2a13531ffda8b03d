import type { Sandbox } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { shownLines, shownName } from '../../ui/shown-text.ts'
import { actions, isPossible } from '../sandboxes/actions.ts'
import { useChange } from './use-change.ts'

const Progress = ({ step, percent }: NonNullable<Sandbox['progress']>) => (
  <div className="stack progress-box">
    <div className="row spread small">
      <span className="wrap-anywhere">{shownName(step)}</span>
      <span className="muted">{percent} %</span>
    </div>
    <div
      className="progress"
      role="progressbar"
      aria-label={step}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <span style={{ width: `${Math.min(Math.max(percent, 0), 100)}%` }} />
    </div>
  </div>
)

const adviceOf = (sandbox: Sandbox): string | undefined => {
  if (sandbox.state === 'build_failed')
    return 'The image of this sandbox could not be built. Delete this sandbox, and create another one.'
  if (sandbox.state !== 'error') return undefined
  return isPossible('recover', sandbox)
    ? '“Recover” starts the sandbox again with its current files. “Recover without start” leaves the sandbox stopped.'
    : 'This sandbox cannot be recovered. Delete it, and create another one.'
}

/** Shows the progress while a sandbox changes its state, or what went wrong with the sandbox. */
export const Condition = ({ sandbox }: { sandbox: Sandbox }) => {
  const { isBusy, act } = useChange(sandbox.id)
  const { errorReason, progress, state } = sandbox
  const advice = adviceOf(sandbox)
  const isBroken = state === 'error' || state === 'build_failed'
  return (
    <>
      {progress !== undefined && <Progress {...progress} />}
      {(errorReason !== undefined || advice !== undefined) && (
        <div className={isBroken ? 'notice danger stack' : 'notice warn stack'} role={isBroken ? 'alert' : 'status'}>
          {errorReason !== undefined && <div className="condition-reason">{shownLines(errorReason)}</div>}
          {advice !== undefined && <div>{advice}</div>}
          {isPossible('recover', sandbox) && (
            <div className="row">
              <Button compact disabled={isBusy} onClick={() => void act('Recover', actions.recover.run(sandbox.id))}>
                Recover
              </Button>
              <Button
                compact
                disabled={isBusy}
                onClick={() => void act('Recover', actions.recover.run(sandbox.id, { skipStart: true }))}
              >
                Recover without start
              </Button>
            </div>
          )}
        </div>
      )}
    </>
  )
}
