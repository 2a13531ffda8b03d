import { useLayoutEffect, useRef, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { useBuildLog } from './use-build-log.ts'
import './snapshots.css'

type BuildLogProps = {
  /** The path of the log, relative to the API's address. */
  path: string
  /** Whether the build still runs. */
  isMoving: boolean
}

/** Maximum distance from the end of the log, in pixels, at which the log still scrolls to new text. */
const nearEnd = 24

/** Shows a build log live. Scrolls to new text only while the end of the log is in view. */
export const BuildLog = ({ path, isMoving }: BuildLogProps) => {
  const { text, dropped, state, retry } = useBuildLog(path, isMoving)
  const [isAtEnd, setAtEnd] = useState(true)
  const pre = useRef<HTMLPreElement>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text moves the end
  useLayoutEffect(() => {
    if (isAtEnd && pre.current !== null) pre.current.scrollTop = pre.current.scrollHeight
  }, [text, isAtEnd])
  const onScroll = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: React.UIEvent) =>
    setAtEnd(scrollHeight - scrollTop - clientHeight < nearEnd)
  return (
    <section className="card" aria-label="Build log">
      <div className="card-head">
        <h2>Build log</h2>
        <span className="row">
          {!isAtEnd && (
            <Button compact onClick={() => setAtEnd(true)}>
              Go to the end
            </Button>
          )}
          <span className="muted small" role="status">
            {state.name === 'following' && isMoving && 'Following'}
            {state.name === 'ended' && !isMoving && text !== '' && 'Complete'}
          </span>
        </span>
      </div>
      {dropped > 0 && <div className="log-note muted small">{dropped} earlier lines are not shown.</div>}
      {text === '' ? (
        <div className="waiting">
          {isMoving ? 'The log is still empty.' : 'There is no log of this build any more.'}
        </div>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <pre ref={pre} className="build-log" tabIndex={0} onScroll={onScroll}>
          {text}
        </pre>
      )}
      {state.name === 'broken' && <ErrorNotice error={state.error} retry={retry} />}
    </section>
  )
}
