import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { answerOf, apiUrl, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/copy.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'

/** Shown while an organization has no sandboxes: commands to copy, and a button that makes the first sandbox. */
export const FirstSteps = () => {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const make = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const { id } = await answerOf(control.POST('/sandbox', { body: {} as never }))
      void queries.invalidateQueries({ queryKey: [organizationId, 'sandboxes'] })
      await navigate({ to: '/sandboxes/$sandboxId/$tab', params: { sandboxId: id, tab: 'terminal' } })
    } catch (caught) {
      setError(caught)
      setBusy(false)
    }
  }
  const lines = [
    `export ALCOVE_API_URL=${apiUrl} ALCOVE_API_KEY=…   # a key from “API keys”`,
    `curl -sX POST $ALCOVE_API_URL/sandbox -H "Authorization: Bearer $ALCOVE_API_KEY"`,
    `curl -s $ALCOVE_API_URL/sandbox -H "Authorization: Bearer $ALCOVE_API_KEY"`,
  ].join('\n')
  return (
    <div className="card">
      <div className="card-body">
        <h2>Your first sandbox</h2>
        <p className="muted">
          A sandbox is a Linux machine of its own: it starts in milliseconds, keeps its files, and stops automatically
          when nobody uses it.
        </p>
        <div className="row">
          <Button kind="primary" disabled={isBusy} onClick={() => void make()}>
            {isBusy ? 'Making it…' : 'Create a sandbox and open its terminal'}
          </Button>
        </div>
        {error !== undefined && <ErrorNotice error={error} />}
        <h3>Or from your own terminal</h3>
        <CodeBlock code={lines} />
      </div>
    </div>
  )
}
