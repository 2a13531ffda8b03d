import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import type { Organization } from '../../session/people.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { headersOf, linesOf } from './telemetry.ts'

const path = '/organizations/{organizationId}/otel-config'

const TelemetryDialog = ({ organization, onClose }: { organization: Organization; onClose: () => void }) => {
  const queries = useQueryClient()
  const [endpoint, setEndpoint] = useState(organization.otelConfig?.endpoint ?? '')
  const [lines, setLines] = useState(() => linesOf(organization.otelConfig?.headers))
  const save = async () => {
    const body = { endpoint: endpoint.trim(), headers: headersOf(lines) }
    await answerOf(control.PUT(path, { params: { path: { organizationId: organization.id } }, body } as never))
    await queries.invalidateQueries({ queryKey: ['organizations'] })
    toast('Telemetry is now sent to the collector')
    onClose()
  }
  return (
    <FormDialog
      title="Telemetry of sandboxes"
      description="Traces, metrics and logs of the sandboxes are sent to an OpenTelemetry collector over HTTP."
      isOpen
      onClose={onClose}
      submit="Save"
      isSubmitDisabled={endpoint.trim() === ''}
      onSubmit={save}
    >
      <TextField
        label="Endpoint"
        type="url"
        placeholder="https://collector.example.com"
        value={endpoint}
        onChange={setEndpoint}
        maxLength={2048}
      />
      <TextArea
        label="Headers"
        hint="One header per line, as “Name: value”. A value of asterisks keeps the stored value."
        className="input mono"
        spellCheck={false}
        value={lines}
        onChange={setLines}
      />
    </FormDialog>
  )
}

/** The endpoint to which the telemetry of the organization’s sandboxes is sent. Stored values of headers are never shown. */
export const TelemetryCard = ({ organization, isOwner }: { organization: Organization; isOwner: boolean }) => {
  const queries = useQueryClient()
  const [open, setOpen] = useState<'change' | 'remove'>()
  const config = organization.otelConfig
  const remove = async () => {
    await answerOf(control.DELETE(path, { params: { path: { organizationId: organization.id } } } as never))
    await queries.invalidateQueries({ queryKey: ['organizations'] })
    toast('Telemetry is no longer sent')
  }
  return (
    <section className="card" aria-label="Telemetry">
      <div className="card-head">
        <h2>Telemetry</h2>
        {isOwner && (
          <div className="row">
            <Button compact onClick={() => setOpen('change')}>
              {config === null ? 'Set up…' : 'Change…'}
            </Button>
            {config !== null && (
              <Button compact kind="danger" onClick={() => setOpen('remove')}>
                Stop sending
              </Button>
            )}
          </div>
        )}
      </div>
      <div className="card-body">
        {config === null ? (
          <p className="muted">Sandboxes can send traces, metrics and logs to your OpenTelemetry collector.</p>
        ) : (
          <dl className="facts">
            <dt>Endpoint</dt>
            <dd>{config.endpoint}</dd>
            <dt>Headers</dt>
            <dd>{Object.keys(config.headers ?? {}).join(', ') || <span className="muted">None</span>}</dd>
          </dl>
        )}
      </div>
      {open === 'change' && <TelemetryDialog organization={organization} onClose={() => setOpen(undefined)} />}
      <Confirm
        title="Stop sending telemetry?"
        verb="Stop sending"
        isOpen={open === 'remove'}
        onClose={() => setOpen(undefined)}
        onConfirm={remove}
      >
        <p>The server deletes the stored endpoint and its headers.</p>
      </Confirm>
    </section>
  )
}
