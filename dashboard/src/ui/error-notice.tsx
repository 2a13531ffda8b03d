import { ApiProblem } from '../api/problem.ts'
import { Button } from './button.tsx'

/** Shows an error's message and, if the server answered, the request id with which the call can be found in the server's log. */
export const ErrorNotice = ({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) => (
  <div className="notice danger" role="alert">
    <div>{error instanceof Error ? error.message : String(error)}</div>
    {error instanceof ApiProblem && error.requestId !== undefined && (
      <div className="small">
        Request <code>{error.requestId}</code>
      </div>
    )}
    {retry !== undefined && (
      <Button compact onClick={retry}>
        Try again
      </Button>
    )}
  </div>
)
