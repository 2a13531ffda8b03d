import { useEffect, useState } from 'react'
import { Button } from '../../../ui/button.tsx'
import type { LinkState } from './pty-link.ts'

/** Shows how many seconds are left until the time `until`. */
const Seconds = ({ until }: { until: number }) => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(1, Math.ceil((until - now) / 1000))
  return <>{seconds === 1 ? '1 second' : `${seconds} seconds`}</>
}

type NoticeProps = {
  state: LinkState
  onRetry: () => void
  /** Opens a new terminal. Undefined while the sandbox does not run. */
  onNew: (() => void) | undefined
}

/** Shows whether the terminal is connected. The notice is outside of the terminal's screen, so that no program can imitate it. */
export const LinkNotice = ({ state, onRetry, onNew }: NoticeProps) => {
  const again = onNew !== undefined && (
    <Button compact kind="primary" onClick={onNew}>
      Open a new terminal
    </Button>
  )
  switch (state.name) {
    case 'connected':
      return null
    case 'connecting':
      return (
        <div className="link-notice" role="status">
          Connecting…
        </div>
      )
    case 'held':
      return (
        <div className="link-notice warn" role="status">
          The sandbox is not running. Shells end when a sandbox stops. When a paused sandbox is resumed, its shells
          continue.
        </div>
      )
    case 'waiting':
      return (
        <div className="link-notice warn" role="status">
          <span className="wrap-anywhere">
            Not connected. {state.reason} Next try in{' '}
            <span aria-hidden="true">
              <Seconds key={state.retryAt} until={state.retryAt} />
            </span>
            .
          </span>
          <Button compact onClick={onRetry}>
            Try now
          </Button>
        </div>
      )
    case 'ended':
      return (
        <div className="link-notice" role="status">
          <span className="wrap-anywhere">
            The shell has ended{state.exitCode === undefined ? '' : ` with exit code ${state.exitCode}`}
            {state.reason === undefined ? '.' : ` (${state.reason}).`}
          </span>
          {again}
        </div>
      )
    case 'gone':
      return (
        <div className="link-notice" role="status">
          <span>This shell is gone: it has ended, or the sandbox has been restarted.</span>
          {again}
        </div>
      )
  }
}
