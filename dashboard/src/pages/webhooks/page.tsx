import { useState } from 'react'
import { ApiProblem } from '../../api/problem.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { SecretOnce } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { toast, toastError } from '../../ui/toast.tsx'
import { AttemptsDialog } from './attempts.tsx'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { type EndpointAction, EndpointTable } from './endpoint-table.tsx'
import { Provider } from './provider.tsx'
import { type Endpoint, type EndpointBody, useWebhookStatus, useWebhooks } from './use-webhooks.ts'
import './webhooks.css'

const WebhooksPage = () => {
  const status = useWebhookStatus()
  const webhooks = useWebhooks()
  const { query, add, change, remove, rotate, resend } = webhooks
  const [isAdding, setAdding] = useState(false)
  const [asked, setAsked] = useState<{ action: EndpointAction; endpoint: Endpoint }>()
  const [secret, setSecret] = useState<string>()
  const close = () => setAsked(undefined)
  const url = shownText(asked?.endpoint.url ?? '')

  const begin = (action: EndpointAction, endpoint: Endpoint) => {
    if (action !== 'enable') setAsked({ action, endpoint })
    else change(endpoint.id, { disabled: false }).catch((error: unknown) => toastError('It stays disabled', error))
  }
  const save = async (body: Required<EndpointBody>) => {
    if (isAdding) setSecret((await add(body)).secret)
    else await change(asked!.endpoint.id, body)
    setAdding(false)
    close()
  }
  // Status 409 means that an external webhook provider manages the endpoints, so this page cannot change them.
  const isElsewhere = query.error instanceof ApiProblem && query.error.status === 409
  const addButton = (
    <Button kind="primary" disabled={isElsewhere} onClick={() => setAdding(true)}>
      Add endpoint
    </Button>
  )
  return (
    <Page
      title="Webhooks"
      description="Alcove sends messages to your own server when something happens to sandboxes, snapshots and volumes."
      actions={addButton}
    >
      <WhenLoaded query={status}>{(found) => <Provider status={found} {...webhooks} />}</WhenLoaded>
      {isElsewhere ? (
        <Empty title="Endpoints are kept at the webhook provider">
          Open the provider’s page to see and change the endpoints.
        </Empty>
      ) : (
        <WhenLoaded query={query}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No endpoints yet" action={addButton}>
                Add the address of your own server. The address gets a signed message for each event.
              </Empty>
            ) : (
              <EndpointTable rows={rows} onAction={begin} />
            )
          }
        </WhenLoaded>
      )}
      {(isAdding || asked?.action === 'change') && (
        <EndpointDialog
          endpoint={asked?.endpoint}
          onSave={save}
          onClose={() => {
            setAdding(false)
            close()
          }}
        />
      )}
      {asked?.action === 'attempts' && (
        <AttemptsDialog
          endpoint={asked.endpoint}
          onResend={(messageId) => resend(asked.endpoint.id, messageId)}
          onClose={close}
        />
      )}
      <Dialog title="Secret of the endpoint" isOpen={secret !== undefined} onClose={() => setSecret(undefined)}>
        <p>With this secret, your server checks that a message comes from this server.</p>
        <SecretOnce value={secret ?? ''} what="the secret" />
        <div className="dialog-actions">
          <Button kind="primary" onClick={() => setSecret(undefined)}>
            Done
          </Button>
        </div>
      </Dialog>
      <Confirm
        title="Make a new secret?"
        verb="Make a new secret"
        isOpen={asked?.action === 'rotate'}
        onClose={close}
        onConfirm={async () => setSecret((await rotate(asked!.endpoint.id)).secret)}
      >
        <span className="wrap-anywhere">
          Messages to {url} are signed with the new secret and, for another 24 hours, also with the old secret.
        </span>
      </Confirm>
      <Confirm
        title="Disable the endpoint?"
        verb="Disable"
        isOpen={asked?.action === 'disable'}
        onClose={close}
        onConfirm={() => change(asked!.endpoint.id, { disabled: true })}
      >
        <span className="wrap-anywhere">
          {url} gets no more messages. Messages that are waiting for this endpoint are not sent.
        </span>
      </Confirm>
      <Confirm
        title="Remove the endpoint?"
        verb="Remove"
        isOpen={asked?.action === 'remove'}
        onClose={close}
        onConfirm={async () => {
          await remove(asked!.endpoint.id)
          toast('The endpoint is removed')
        }}
      >
        <span className="wrap-anywhere">{url} gets no more messages, and its attempts are forgotten.</span>
      </Confirm>
    </Page>
  )
}

export default WebhooksPage
