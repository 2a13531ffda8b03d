import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useRegionName } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { resourcesText } from '../snapshots/texts.ts'
import { useWarmPools, type WarmPool } from './use-warm-pools.ts'
import { ChangeWarmPoolDialog, MakeWarmPoolDialog } from './warm-pool-dialog.tsx'

type Action = 'change' | 'drain' | 'delete'

const Ready = ({ warmPool: { currentSize, pool, errorReason } }: { warmPool: WarmPool }) => (
  <>
    <span className={`badge ${currentSize === pool ? 'ok' : 'info moving'}`}>
      {currentSize} of {pool} ready
    </span>
    {errorReason !== null && <div className="field-error wrap-anywhere">{shownText(errorReason)}</div>}
  </>
)

type RowProps = { warmPool: WarmPool; onAction: (action: Action, warmPool: WarmPool) => void }

const Row = ({ warmPool, onAction }: RowProps) => {
  const nameOf = useRegionName()
  const { snapshot, target, pool, createdAt } = warmPool
  return (
    <tr>
      <td>
        <Link to="/snapshots/$snapshotId" params={{ snapshotId: snapshot }} className="name wrap-anywhere">
          {shownText(snapshot)}
        </Link>
      </td>
      <td>
        <Ready warmPool={warmPool} />
      </td>
      <td>{shownText(nameOf(target))}</td>
      <td className="time wide-only">{resourcesText(warmPool)}</td>
      <td className="time wide-only">
        <TimeAgo time={createdAt} />
      </td>
      <td className="actions">
        <RowMenu name={snapshot}>
          <MenuItem onSelect={() => onAction('change', warmPool)}>Change the number…</MenuItem>
          <MenuItem isDisabled={pool === 0} onSelect={() => onAction('drain', warmPool)}>
            Drain…
          </MenuItem>
          <MenuLine />
          <MenuItem isDanger onSelect={() => onAction('delete', warmPool)}>
            Delete…
          </MenuItem>
        </RowMenu>
      </td>
    </tr>
  )
}

const WarmPoolsPage = () => {
  const { query, make, setNumber, remove } = useWarmPools()
  const [isMaking, setMaking] = useState(false)
  const [asked, setAsked] = useState<{ action: Action; warmPool: WarmPool }>()
  const close = () => setAsked(undefined)
  const name = shownText(asked?.warmPool.snapshot ?? '')
  const makeButton = (
    <Button kind="primary" onClick={() => setMaking(true)}>
      Make warm pool
    </Button>
  )
  return (
    <Page
      title="Warm pools"
      description="A warm pool keeps started sandboxes of one snapshot ready, so that a new sandbox is there immediately."
      actions={makeButton}
    >
      <WhenLoaded query={query}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="No warm pools yet" action={makeButton}>
              Make a warm pool for a snapshot that you often use. New sandboxes are taken from the pool, and the pool is
              refilled in the background.
            </Empty>
          ) : (
            <div className="card">
              <Table
                label="Warm pools"
                columns={['Snapshot', 'Sandboxes', 'Region', wide('A sandbox has'), wide('Created')]}
                rows={rows}
              >
                {(warmPool) => (
                  <Row
                    key={warmPool.id}
                    warmPool={warmPool}
                    onAction={(action, row) => setAsked({ action, warmPool: row })}
                  />
                )}
              </Table>
            </div>
          )
        }
      </WhenLoaded>
      {isMaking && <MakeWarmPoolDialog onMake={make} onClose={() => setMaking(false)} />}
      {asked?.action === 'change' && (
        <ChangeWarmPoolDialog
          warmPool={asked.warmPool}
          onChange={(pool) => setNumber(asked.warmPool.id, pool)}
          onClose={close}
        />
      )}
      <Confirm
        title={`Drain the warm pool of ${name}?`}
        verb="Drain"
        isOpen={asked?.action === 'drain'}
        onClose={close}
        onConfirm={() => setNumber(asked!.warmPool.id, 0)}
      >
        The number of sandboxes becomes 0, and the sandboxes that nobody has taken are deleted. The pool stays, and you
        can fill it again.
      </Confirm>
      <Confirm
        title={`Delete the warm pool of ${name}?`}
        verb="Delete"
        isOpen={asked?.action === 'delete'}
        onClose={close}
        onConfirm={async () => {
          await remove(asked!.warmPool.id)
          toast(`The warm pool of ${name} is deleted`)
        }}
      >
        The sandboxes that nobody has taken are deleted. Sandboxes that somebody has taken from the pool stay.
      </Confirm>
    </Page>
  )
}

export default WarmPoolsPage
