import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { webAddress } from '../../ui/shown-text.ts'
import { toast, toastError } from '../../ui/toast.tsx'
import type { useWebhooks, WebhookStatus } from './use-webhooks.ts'

type ProviderProps = { status: WebhookStatus | null } & Pick<
  ReturnType<typeof useWebhooks>,
  'initialize' | 'openPortal'
>

/** Says whether the organization is registered with the webhook provider, and opens the provider's own page. */
export const Provider = ({ status, initialize, openPortal }: ProviderProps) => {
  const [isBusy, setBusy] = useState(false)
  const [link, setLink] = useState<string>()
  const [error, setError] = useState<unknown>()
  const run = async (work: () => Promise<void>, what: string) => {
    setBusy(true)
    try {
      await work()
    } catch (caught) {
      toastError(what, caught)
    } finally {
      setBusy(false)
    }
  }
  const portal = () =>
    run(async () => {
      const { url } = await openPortal()
      const address = webAddress(url)
      setLink(address)
      setError(address === undefined ? new Error('The provider did not answer with a valid address.') : undefined)
    }, 'The page of the provider cannot be opened')
  const again = () =>
    run(async () => {
      await initialize()
      toast('Webhooks are initialized')
    }, 'Webhooks are not initialized')
  return (
    <div className="stack">
      {status !== null && status.lastError !== null && (
        <div className="notice warn" role="alert">
          Webhooks are not ready: {status.lastError} (tried {status.retryCount} times)
        </div>
      )}
      {error !== undefined && <ErrorNotice error={error} />}
      <div className="row">
        <span className="muted small">
          {status === null
            ? 'Webhooks of this organization are not initialized yet. Adding the first endpoint initializes them.'
            : status.webhookProviderApplicationId !== null && 'Webhooks of this organization are initialized.'}
        </span>
        {(status === null || status.webhookProviderApplicationId === null) && (
          <Button compact disabled={isBusy} onClick={() => void again()}>
            Initialize
          </Button>
        )}
        <Button compact kind="quiet" disabled={isBusy} onClick={() => void portal()}>
          Page of the provider…
        </Button>
      </div>
      <Dialog
        title="Page of the provider"
        description="The link works only once, and only for a few minutes."
        isOpen={link !== undefined}
        onClose={() => setLink(undefined)}
      >
        <div className="dialog-actions">
          <Button onClick={() => setLink(undefined)}>Close</Button>
          <a
            className="button primary"
            href={link}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => setLink(undefined)}
          >
            Open it
          </a>
        </div>
      </Dialog>
    </div>
  )
}
