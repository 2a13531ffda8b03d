import { useState } from 'react'
import { FormDialog } from '../../ui/dialog.tsx'
import { CheckField, TextField } from '../../ui/field.tsx'
import { events, type WebhookEvent } from './events.ts'
import type { Endpoint, EndpointBody } from './use-webhooks.ts'

type EndpointDialogProps = {
  /** The endpoint to change. If undefined, the dialog adds one. */
  endpoint: Endpoint | undefined
  onSave: (body: Required<EndpointBody>) => Promise<unknown>
  onClose: () => void
}

/** Asks for the URL of a webhook endpoint, and for the events that are sent to it. */
export const EndpointDialog = ({ endpoint, onSave, onClose }: EndpointDialogProps) => {
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [description, setDescription] = useState(endpoint?.description ?? '')
  const [chosen, setChosen] = useState<readonly WebhookEvent[]>(endpoint?.events ?? [])
  return (
    <FormDialog
      title={endpoint === undefined ? 'Add an endpoint' : 'Change the endpoint'}
      description="Alcove sends a signed message by POST to this address for each event."
      isOpen
      onClose={onClose}
      submit={endpoint === undefined ? 'Add' : 'Change'}
      isSubmitDisabled={url.trim() === ''}
      onSubmit={() => onSave({ url: url.trim(), description, events: [...chosen] })}
    >
      <TextField
        label="Address"
        type="url"
        hint="Such as https://example.com/alcove"
        spellCheck={false}
        maxLength={2048}
        value={url}
        onChange={setUrl}
      />
      <TextField label="Description" maxLength={255} value={description} onChange={setDescription} />
      <fieldset className="event-choice">
        <legend className="field-label">Events</legend>
        <div className="field-hint">If you choose none, all events are sent, including events of later versions.</div>
        {Object.entries(events).map(([name, meaning]) => {
          const event = name as WebhookEvent
          return (
            <CheckField
              key={event}
              label={
                <>
                  <code>{event}</code> <span className="muted small">{meaning}</span>
                </>
              }
              checked={chosen.includes(event)}
              onChange={(isChosen) =>
                setChosen(isChosen ? [...chosen, event] : chosen.filter((other) => other !== event))
              }
            />
          )
        })}
      </fieldset>
    </FormDialog>
  )
}
