import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useMemo } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button, buttonClass, IconButton } from '../../../ui/button.tsx'
import { Icon } from '../../../ui/icons.tsx'
import { WhenLoaded } from '../../../ui/page.tsx'
import { useChange } from '../use-change.ts'
import { type SecretRow, secretRowsOf, secretsBody, secretsProblem } from './secret-rows.ts'
import { SettingCard, SettingForm } from './setting-card.tsx'
import { useDraft } from './use-draft.ts'

const mostOffered = 200
const title = 'Secrets'
const hint = 'Variables that hold the placeholder of a secret. Processes that start later have these variables.'

type Known = { id: string; name: string }

const Rows = ({ sandbox, known }: { sandbox: Sandbox; known: readonly Known[] }) => {
  const saved = useMemo(() => secretRowsOf(sandbox.secrets, known), [sandbox.secrets, known])
  const { value: rows, set, discard, isDirty, isStale } = useDraft(saved)
  const { change } = useChange(sandbox.id)
  const edit = (id: number, part: Partial<SecretRow>) =>
    set(rows.map((row) => (row.id === id ? { ...row, ...part } : row)))
  const add = () => set([...rows, { id: Math.max(-1, ...rows.map(({ id }) => id)) + 1, variable: '', name: '' }])
  const save = () =>
    change(
      answerOf(
        control.PUT('/sandbox/{sandboxIdOrName}/secrets', {
          params: { path: { sandboxIdOrName: sandbox.id } },
          body: secretsBody(rows),
        } as never),
      ),
    )
  return (
    <SettingForm
      title={title}
      hint={hint}
      isDirty={isDirty}
      isStale={isStale}
      problem={secretsProblem(rows)}
      onSave={save}
      onDiscard={discard}
    >
      {rows.length === 0 && <div className="muted">This sandbox has no secrets.</div>}
      {rows.map(({ id, variable, name }, index) => (
        <div key={id} className="label-row">
          <input
            className="input mono"
            aria-label={`Variable of secret ${index + 1}`}
            placeholder="VARIABLE"
            spellCheck={false}
            value={variable}
            onChange={(event) => edit(id, { variable: event.target.value.trim() })}
          />
          <select
            className="input"
            aria-label={`Name of secret ${index + 1}`}
            value={name}
            onChange={(event) => edit(id, { name: event.target.value })}
          >
            {name === '' && <option value="">Choose a secret</option>}
            {name !== '' && !known.some((secret) => secret.name === name) && <option value={name}>{name}</option>}
            {known.map((secret) => (
              <option key={secret.id} value={secret.name}>
                {secret.name}
              </option>
            ))}
          </select>
          <IconButton
            kind="quiet"
            label={`Remove secret ${index + 1}`}
            onClick={() => set(rows.filter((row) => row.id !== id))}
          >
            <Icon name="close" />
          </IconButton>
        </div>
      ))}
      {known.length === 0 ? (
        <div className="stack">
          <div>This organization has no secrets yet.</div>
          <div>
            <Link to="/secrets" className={buttonClass({ compact: true })}>
              Add a secret to the organization
            </Link>
          </div>
        </div>
      ) : (
        <div>
          <Button compact onClick={add}>
            Add a secret
          </Button>
        </div>
      )}
    </SettingForm>
  )
}

/** Chooses which secrets a sandbox has. Only the names of the secrets are shown, never their values. */
export const SecretsForm = ({ sandbox }: { sandbox: Sandbox }) => {
  const organizationId = useOrganizationId()
  const query = useQuery({
    queryKey: [organizationId, 'secrets', 'names'],
    queryFn: ({ signal }) =>
      answerOf(control.GET('/secret/paginated', { params: { query: { limit: mostOffered } as never }, signal })),
  })
  if (query.data === undefined)
    return (
      <SettingCard title={title} hint={hint}>
        <WhenLoaded query={query}>{() => null}</WhenLoaded>
      </SettingCard>
    )
  return <Rows sandbox={sandbox} known={query.data.items} />
}
