import { useState } from 'react'
import { ApiProblem } from '../../api/problem.ts'
import { useRegionName } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { Empty, WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { StateBadge } from '../../ui/state-badge.tsx'
import { Table, wide } from '../../ui/table.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast, toastError } from '../../ui/toast.tsx'
import { AddRunnerDialog, JoinDialog, RemoveRunnerDialog } from './runner-dialogs.tsx'
import { type NewRunner, type Runner, useRunners } from './use-runners.ts'

type Asked = { action: 'drain' | 'undrain' | 'remove'; runner: Runner }

const Given = ({ given, of, unit }: { given: number; of: number; unit: string }) => (
  <>
    {Number(given.toFixed(1))} of {Number(of.toFixed(1))} {unit}
  </>
)

const Row = ({ runner, onAsk }: { runner: Runner; onAsk: (asked: Asked) => void }) => {
  const nameOf = useRegionName()
  const { name, region, state, unschedulable, sandboxes, currentStartedSandboxes, warm, lastChecked, version } = runner
  return (
    <tr>
      <td>
        <div className="name wrap-anywhere">{shownText(name)}</div>
        <div className="muted small">{[nameOf(region), version].filter(Boolean).map(shownText).join(', ')}</div>
      </td>
      <td>{unschedulable ? <span className="badge warn">drained</span> : <StateBadge state={state} />}</td>
      <td>
        {sandboxes}
        <div className="muted small">
          {currentStartedSandboxes} started, {warm} warm
        </div>
      </td>
      <td className="time wide-only">
        <Given given={runner.currentAllocatedCpu} of={runner.cpu} unit="CPU" />
      </td>
      <td className="time wide-only">
        <Given given={runner.currentAllocatedMemoryGiB} of={runner.memory} unit="GiB" />
      </td>
      <td className="time wide-only">
        <Given given={runner.currentAllocatedDiskGiB} of={runner.disk} unit="GiB" />
      </td>
      <td className="time">{lastChecked === undefined ? 'never' : <TimeAgo time={lastChecked} />}</td>
      <td className="actions">
        <RowMenu name={name}>
          {unschedulable ? (
            <MenuItem onSelect={() => onAsk({ action: 'undrain', runner })}>Take back into service</MenuItem>
          ) : (
            <MenuItem onSelect={() => onAsk({ action: 'drain', runner })}>Drain…</MenuItem>
          )}
          <MenuLine />
          <MenuItem isDanger onSelect={() => onAsk({ action: 'remove', runner })}>
            Remove…
          </MenuItem>
        </RowMenu>
      </td>
    </tr>
  )
}

/** Shows operators the runners of the server. Other users see a notice that only operators may see runners. */
export const Runners = () => {
  const { query, add, setDrained, remove } = useRunners()
  const [isAdding, setAdding] = useState(false)
  const [made, setMade] = useState<NewRunner>()
  const [asked, setAsked] = useState<Asked>()
  const close = () => setAsked(undefined)
  const isRefused = query.error instanceof ApiProblem && query.error.status === 403
  const ask = (next: Asked) => {
    if (next.action !== 'undrain') return setAsked(next)
    setDrained(next.runner.id, false).catch((error: unknown) => toastError('It stays drained', error))
  }
  const name = shownText(asked?.runner.name ?? '')
  return (
    <section className="stack" aria-labelledby="runners-title">
      <div className="row spread">
        <h2 id="runners-title">Runners</h2>
        {!isRefused && (
          <Button compact onClick={() => setAdding(true)}>
            Add runner
          </Button>
        )}
      </div>
      {isRefused ? (
        <div className="notice">
          Runners are the programs that run the sandboxes of a host. Only operators of this server can see them.
        </div>
      ) : (
        <WhenLoaded query={query}>
          {(rows) =>
            rows.length === 0 ? (
              <Empty title="No runners">Without a runner, no sandbox can start. Add a runner.</Empty>
            ) : (
              <div className="card">
                <Table
                  label="Runners"
                  columns={[
                    'Name',
                    'State',
                    'Sandboxes',
                    wide('Processors given out'),
                    wide('Memory given out'),
                    wide('Disk given out'),
                    'Last seen',
                  ]}
                  rows={rows}
                >
                  {(runner) => <Row key={runner.id} runner={runner} onAsk={ask} />}
                </Table>
              </div>
            )
          }
        </WhenLoaded>
      )}
      {isAdding && (
        <AddRunnerDialog
          onAdd={async (text, regionId) => {
            setMade(await add(text, regionId))
            setAdding(false)
          }}
          onClose={() => setAdding(false)}
        />
      )}
      {made !== undefined && <JoinDialog runner={made} onClose={() => setMade(undefined)} />}
      <Confirm
        title={`Drain ${name}?`}
        verb="Drain"
        isOpen={asked?.action === 'drain'}
        onClose={close}
        onConfirm={() => setDrained(asked!.runner.id, true)}
      >
        The runner gets no new sandboxes. Its existing sandboxes continue to run. You can undo this at any time.
      </Confirm>
      {asked?.action === 'remove' && (
        <RemoveRunnerDialog
          runner={asked.runner}
          onRemove={async (force) => {
            await remove(asked.runner.id, force)
            toast(`The runner ${name} is removed`)
          }}
          onClose={close}
        />
      )}
    </section>
  )
}
