import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Sandbox } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { isMoving } from '../../ui/state-badge.tsx'
import { actions, isPossible } from '../sandboxes/actions.ts'
import './not-running.css'

/** Says that the sandbox does not run, and offers to start it. `needs`: a sentence that says why the sandbox must run. */
export const NotRunning = ({ sandbox, needs }: { sandbox: Sandbox; needs: string }) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const start = useMutation({
    mutationFn: () => actions.start.run(sandbox.id),
    onSettled: () => queries.invalidateQueries({ queryKey: [organizationId, 'sandbox'] }),
  })
  return (
    <div className="notice warn not-running" role="status">
      <span>
        This sandbox is {sandbox.state.replaceAll('_', ' ')}. {needs}
      </span>
      {isPossible('start', sandbox) && (
        <Button compact disabled={start.isPending} onClick={() => start.mutate()}>
          {start.isPending ? 'Starting…' : 'Start'}
        </Button>
      )}
      {isMoving(sandbox.state) && <span>Please wait.</span>}
      {start.error !== null && <ErrorNotice error={start.error} />}
    </div>
  )
}
