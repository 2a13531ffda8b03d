import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { answerOf, apiUrl, control } from '../../api/client.ts'
import { problemOf, unreachable } from '../../api/problem.ts'
import { session } from '../../session/session.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { SelectField } from '../../ui/field.tsx'
import { Page, WhenLoaded } from '../../ui/page.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { type OpenApi, withServer } from './document.ts'
import { Viewer } from './viewer.tsx'
import './api.css'

type Service = 'control' | 'toolbox'

const mostSandboxes = 200

const addressOf = (service: Service): string =>
  service === 'control'
    ? `${apiUrl}/openapi.json`
    : session.config.proxyToolboxUrl.replace(/\/toolbox\/?$/, '/openapi.json')

const useDocument = (service: Service) =>
  useQuery<OpenApi>({
    queryKey: ['openapi', service],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const response = await fetch(addressOf(service), { signal }).catch((cause: unknown) => {
        throw cause instanceof DOMException ? cause : unreachable()
      })
      if (!response.ok) throw problemOf(response, await response.json().catch(() => undefined))
      return (await response.json()) as OpenApi
    },
  })

const SandboxField = ({ value, onChange }: { value: string; onChange: (id: string) => void }) => {
  const organizationId = useOrganizationId()
  const { data } = useQuery({
    queryKey: [organizationId, 'api-sandboxes'],
    queryFn: ({ signal }) => answerOf(control.GET('/sandbox', { params: { query: { limit: mostSandboxes } }, signal })),
  })
  return (
    <SelectField
      label="Sandbox"
      hint="Calls act inside this sandbox. The list has the sandboxes that were active last."
      value={value}
      onChange={onChange}
      options={[
        { value: '', label: 'None: only read' },
        ...(data?.items ?? []).map(({ id, name, state }) => ({ value: id, label: `${shownText(name)} (${state})` })),
      ]}
    />
  )
}

const ApiPage = () => {
  const [service, setService] = useState<Service>('control')
  const [sandboxId, setSandboxId] = useState('')
  const query = useDocument(service)
  const server =
    service === 'control' ? apiUrl : `${session.config.proxyToolboxUrl}/${sandboxId === '' ? '{sandboxId}' : sandboxId}`
  const document = useMemo(() => query.data && withServer(query.data, server), [query.data, server])
  return (
    <Page
      title="API reference"
      description="This page describes every call of the API. Calls that you try here are real: they act as you, in this organization. The examples contain no API key: add yours to use them elsewhere."
    >
      <div className="api-choice">
        <SelectField
          label="Service"
          hint="A toolbox acts inside one sandbox."
          value={service}
          onChange={(value) => setService(value as Service)}
          options={[
            { value: 'control', label: 'Server' },
            { value: 'toolbox', label: 'Toolbox of a sandbox' },
          ]}
        />
        {service === 'toolbox' && <SandboxField value={sandboxId} onChange={setSandboxId} />}
      </div>
      <p className="muted small">
        The description itself: <a href={addressOf(service)}>{addressOf(service)}</a>
      </p>
      <WhenLoaded query={{ ...query, data: document }}>
        {(shown) => <Viewer document={shown} canCall={service === 'control' || sandboxId !== ''} />}
      </WhenLoaded>
    </Page>
  )
}

export default ApiPage
