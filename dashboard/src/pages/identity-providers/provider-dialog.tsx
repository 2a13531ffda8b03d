import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { RoleChoice } from '../../roles/role-choice.tsx'
import { developerRoleId } from '../../roles/use-roles.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { FormDialog } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import {
  bodyOf,
  changeOf,
  emptyForm,
  formOf,
  issuerOf,
  isUnfinished,
  type Provider,
  type ProviderForm,
  type Template,
} from './provider-form.ts'
import { TestConnection } from './test-connection.tsx'

const path = '/organizations/{organizationId}/identity-providers'

const useTemplates = () => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'identity-provider-templates'],
    queryFn: () =>
      answerOf(control.GET(`${path}/templates`, { params: { path: { organizationId } } } as never)) as Promise<
        Template[]
      >,
  })
}

/** Turns the name of a placeholder into a label for readers: `tenantId` becomes `Tenant id`. */
const labelOf = (name: string): string => {
  const words = name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`
}

type TemplateFieldsProps = { onFill: (filled: Partial<ProviderForm>) => void }

/**
 * Offers templates for well-known identity providers. Asks for the values of the placeholders in the issuer URL of the chosen
 * template.
 */
const TemplateFields = ({ onFill }: TemplateFieldsProps) => {
  const { data = [] } = useTemplates()
  const [id, setId] = useState('')
  const [typed, setTyped] = useState<Record<string, string>>({})
  const template = data.find((each) => each.id === id)
  const choose = (nextId: string) => {
    const next = data.find((each) => each.id === nextId)
    setId(nextId)
    setTyped({})
    if (next !== undefined)
      onFill({
        name: next.name,
        issuerUrl: issuerOf(next, {}),
        scope: next.scope,
        trustEmailVerified: next.trustEmailVerified,
      })
  }
  return (
    <>
      <SelectField
        label="Kind of provider"
        hint={template?.notes}
        value={id}
        onChange={choose}
        options={[{ value: '', label: 'Choose…' }, ...data.map((each) => ({ value: each.id, label: each.name }))]}
      />
      {template !== undefined && Object.keys(template.placeholders).length > 0 && (
        <div className="field-grid">
          {Object.entries(template.placeholders).map(([name, hint]) => (
            <TextField
              key={name}
              label={labelOf(name)}
              hint={String(hint)}
              value={typed[name] ?? ''}
              onChange={(value) => {
                const next = { ...typed, [name]: value }
                setTyped(next)
                onFill({ issuerUrl: issuerOf(template, next) })
              }}
            />
          ))}
        </div>
      )}
    </>
  )
}

type Props = {
  /** The provider to change. If absent, the dialog makes a new one. */
  provider?: Provider | undefined
  onClose: () => void
  onSaved: () => void
}

export const ProviderDialog = ({ provider, onClose, onSaved }: Props) => {
  const organizationId = useOrganizationId()
  const [form, setForm] = useState<ProviderForm>(() =>
    provider === undefined ? { ...emptyForm, defaultAssignedRoleIds: [developerRoleId] } : formOf(provider),
  )
  const set = <Name extends keyof ProviderForm>(name: Name, value: ProviderForm[Name]) =>
    setForm((before) => ({ ...before, [name]: value }))
  const save = async () => {
    const call =
      provider === undefined
        ? control.POST(path, { params: { path: { organizationId } }, body: bodyOf(form) } as never)
        : control.PATCH(`${path}/{id}`, {
            params: { path: { organizationId, id: provider.id } },
            body: changeOf(provider, form),
          } as never)
    await answerOf(call as Promise<{ response: Response }>)
    onSaved()
    toast(provider === undefined ? `${form.name} is added` : `${form.name} is changed`)
    onClose()
  }
  const isMissing = form.clientId.trim() === '' || (provider === undefined && form.clientSecret === '')
  return (
    <FormDialog
      title={provider === undefined ? 'Add an identity provider' : `Change ${provider.name}`}
      isOpen
      isWide
      onClose={onClose}
      submit={provider === undefined ? 'Add' : 'Save'}
      isSubmitDisabled={form.name.trim() === '' || isUnfinished(form.issuerUrl) || isMissing}
      onSubmit={save}
    >
      {provider === undefined && (
        <TemplateFields onFill={(filled) => setForm((before) => ({ ...before, ...filled }))} />
      )}
      <div className="field-grid">
        <TextField label="Name" value={form.name} onChange={(value) => set('name', value)} maxLength={255} />
        <TextField
          label="Issuer"
          hint="The issuer address in the tokens of the provider"
          value={form.issuerUrl}
          onChange={(value) => set('issuerUrl', value)}
          maxLength={2048}
        />
      </div>
      <TestConnection issuerUrl={form.issuerUrl} />
      <div className="field-grid">
        <TextField
          label="Client id"
          value={form.clientId}
          onChange={(value) => set('clientId', value)}
          maxLength={512}
        />
        <TextField
          label="Client secret"
          type="password"
          autoComplete="new-password"
          hint={
            provider === undefined
              ? 'The secret is stored encrypted, and never shown again'
              : 'Leave empty to keep the stored secret'
          }
          value={form.clientSecret}
          onChange={(value) => set('clientSecret', value)}
          maxLength={2048}
        />
        <TextField label="Scope" value={form.scope} onChange={(value) => set('scope', value)} maxLength={1024} />
      </div>
      <TextArea
        label="Domains of e-mail addresses"
        hint="People with e-mail addresses in these domains, such as example.com, may sign in. For each domain, a member must have a verified address in it."
        rows={2}
        value={form.domains}
        onChange={(value) => set('domains', value)}
      />
      <CheckField
        label="People with addresses in any domain may sign in"
        checked={form.allowAnyDomain}
        onChange={(value) => set('allowAnyDomain', value)}
      />
      <CheckField
        label="Trust the provider’s e-mail addresses even if it does not say that they are verified"
        checked={form.trustEmailVerified}
        onChange={(value) => set('trustEmailVerified', value)}
      />
      <RoleChoice
        label="Roles of new members"
        chosen={form.defaultAssignedRoleIds}
        onChange={(value) => set('defaultAssignedRoleIds', value)}
      />
      <CheckField
        label="People can sign in with this provider"
        checked={form.enabled}
        onChange={(value) => set('enabled', value)}
      />
    </FormDialog>
  )
}
