import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { RegistryDialog } from './registry-dialog.tsx'
import { type Registry, useRegistries } from './use-registries.ts'

type RowProps = { registry: Registry; onChange: () => void; onRemove: () => void }

const Row = ({ registry: { name, url, username, project, updatedAt }, onChange, onRemove }: RowProps) => (
  <tr>
    <td className="name wrap-anywhere">{shownText(name)}</td>
    <td className="wrap-anywhere">
      {shownText(url)}
      {project !== '' && `/${shownText(project)}`}
    </td>
    <td className="wrap-anywhere">{shownText(username)}</td>
    <td className="time wide-only">
      <TimeAgo time={updatedAt} />
    </td>
    <td className="actions">
      <RowMenu name={name}>
        <MenuItem onSelect={onChange}>Change…</MenuItem>
        <MenuLine />
        <MenuItem isDanger onSelect={onRemove}>
          Remove…
        </MenuItem>
      </RowMenu>
    </td>
  </tr>
)

const RegistriesPage = () => {
  const { query, add, change, remove } = useRegistries()
  /** The registry that is being changed, or `'new'` while one is being added. */
  const [edited, setEdited] = useState<Registry | 'new'>()
  const [toRemove, setToRemove] = useState<Registry>()
  const addButton = (
    <Button kind="primary" onClick={() => setEdited('new')}>
      Add registry
    </Button>
  )
  return (
    <Page
      title="Registries"
      description="Accounts with which the server pulls your private images from registries. Public images need no account."
      actions={addButton}
    >
      <WhenLoaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No registries yet" action={addButton}>
              Add an account, and make a snapshot of a private image by its whole name, such as
              registry.example.com/team/app:1.
            </Empty>
          ) : (
            <div className="card">
              <Table label="Registries" columns={['Name', 'Address', 'User', wide('Changed')]} rows={rows}>
                {(registry) => (
                  <Row
                    key={registry.id}
                    registry={registry}
                    onChange={() => setEdited(registry)}
                    onRemove={() => setToRemove(registry)}
                  />
                )}
              </Table>
            </div>
          )
        }
      </WhenLoaded>
      {edited !== undefined && (
        <RegistryDialog
          registry={edited === 'new' ? undefined : edited}
          onAdd={add}
          onChange={change}
          onClose={() => setEdited(undefined)}
        />
      )}
      <Confirm
        title={`Remove ${shownText(toRemove?.name ?? '')}?`}
        verb="Remove"
        isOpen={toRemove !== undefined}
        onClose={() => setToRemove(undefined)}
        onConfirm={async () => {
          await remove(toRemove!.id)
          toast(`${shownText(toRemove!.name)} is removed`)
        }}
      >
        The server no longer uses this account to pull images. Snapshots that were made from these images stay.
      </Confirm>
    </Page>
  )
}

export default RegistriesPage
