import { useCallback, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { SecretDialog } from './secret-dialog.tsx'
import { type Secret, useSecrets } from './use-secrets.ts'

type RowProps = { secret: Secret; onChange: () => void; onDelete: () => void }

const Row = ({ secret: { name, description, hosts, updatedAt }, onChange, onDelete }: RowProps) => (
  <tr>
    <td>
      <div className="name wrap-anywhere">{shownText(name)}</div>
      {description !== undefined && <div className="muted small wrap-anywhere">{shownText(description)}</div>}
    </td>
    <td className="wrap-anywhere">
      {hosts.length === 0 ? <span className="badge warn plain">sent to nobody</span> : shownText(hosts.join(', '))}
    </td>
    <td className="time wide-only">
      <TimeAgo time={updatedAt} />
    </td>
    <td className="actions">
      <RowMenu name={name}>
        <MenuItem onSelect={onChange}>Change…</MenuItem>
        <MenuLine />
        <MenuItem isDanger onSelect={onDelete}>
          Delete…
        </MenuItem>
      </RowMenu>
    </td>
  </tr>
)

const SecretsPage = () => {
  const [text, setText] = useState('')
  const { query, make, change, remove } = useSecrets(text)
  /** The secret that is being changed, or `'new'` while one is being made. */
  const [edited, setEdited] = useState<Secret | 'new'>()
  const [toDelete, setToDelete] = useState<Secret>()
  const find = useCallback((next: string) => setText(next.trim()), [])
  const makeButton = (
    <Button kind="primary" onClick={() => setEdited('new')}>
      Make secret
    </Button>
  )
  return (
    <Page
      title="Secrets"
      description="A sandbox never has the value of a secret, only a placeholder in a variable. In HTTPS requests to the hosts that you name, the server replaces the placeholder with the value."
      actions={makeButton}
    >
      <SearchField label="Name" placeholder="Part of a name" value={text} onChange={find} />
      <WhenLoaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            text === '' ? (
              <Empty title="No secrets yet" action={makeButton}>
                Make a secret, and name it when you create a sandbox: VARIABLE=secret. Programs in the sandbox use the
                variable like the real key.
              </Empty>
            ) : (
              <Empty title="No secret has this name">Search for another part of a name.</Empty>
            )
          ) : (
            <div className="card">
              <Table label="Secrets" columns={['Name', 'Allowed hosts', wide('Changed')]} rows={rows} pages={query}>
                {(secret) => (
                  <Row
                    key={secret.id}
                    secret={secret}
                    onChange={() => setEdited(secret)}
                    onDelete={() => setToDelete(secret)}
                  />
                )}
              </Table>
            </div>
          )
        }
      </WhenLoaded>
      {edited !== undefined && (
        <SecretDialog
          secret={edited === 'new' ? undefined : edited}
          onMake={make}
          onChange={change}
          onClose={() => setEdited(undefined)}
        />
      )}
      <Confirm
        title={`Delete the secret ${shownText(toDelete?.name ?? '')}?`}
        verb="Delete"
        isOpen={toDelete !== undefined}
        onClose={() => setToDelete(undefined)}
        onConfirm={async () => {
          await remove(toDelete!.id)
          toast(`${shownText(toDelete!.name)} is deleted`)
        }}
      >
        The secret is removed from every sandbox that uses it. Programs that are running there keep a placeholder that
        no longer works.
      </Confirm>
    </Page>
  )
}

export default SecretsPage
