import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { answerOf, type Sandbox } from '../../../api/client.ts'
import { toolboxOf, unnoticed } from '../../../api/toolbox-client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { Empty, WhenLoaded } from '../../../ui/page.tsx'
import { Table } from '../../../ui/table.tsx'
import { actions, isPossible } from '../../sandboxes/actions.ts'
import { PublicCard } from '../public-card.tsx'
import type { TabProps } from '../tabs.ts'
import { useChange } from '../use-change.ts'
import { LinkList } from './link-list.tsx'
import { PortRow } from './port-row.tsx'
import { lifetimes, readPort } from './signed-links.ts'
import { useLinks } from './use-links.ts'
import './ports.css'

/** How often the page asks on which ports programs listen, in ms. The server sends no events about ports. */
const lookMilliseconds = 10_000

const usePorts = (sandbox: Sandbox) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'ports', sandbox.id],
    refetchInterval: lookMilliseconds,
    queryFn: async ({ signal }) => {
      const { ports } = await answerOf(toolboxOf(sandbox).GET('/port', { headers: unnoticed, signal }))
      return ports.toSorted((one, other) => one - other)
    },
  })
}

const OtherPort = ({ isBusy, onMake }: { isBusy: boolean; onMake: (port: number) => void }) => {
  const [text, setText] = useState('')
  const port = readPort(text)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (port !== undefined && !isBusy) onMake(port)
  }
  return (
    <form className="row port-other" onSubmit={submit}>
      <TextField
        label="Another port"
        inputMode="numeric"
        placeholder="3000"
        error={text === '' || port !== undefined ? undefined : 'From 1 to 65535'}
        value={text}
        onChange={setText}
      />
      <Button type="submit" disabled={port === undefined || isBusy}>
        Make a link
      </Button>
    </form>
  )
}

const Running = ({ sandbox }: TabProps) => {
  const query = usePorts(sandbox)
  const [seconds, setSeconds] = useState<number>(3600)
  const { links, isBusy, make, end } = useLinks(sandbox)
  const onMake = (port: number, isOpened: boolean) => void make(port, seconds, isOpened)
  return (
    <>
      <section className="card" aria-labelledby="ports">
        <div className="card-head">
          <h2 id="ports">Ports that listen</h2>
          <Button compact disabled={query.isFetching} onClick={() => void query.refetch()}>
            Look again
          </Button>
        </div>
        <WhenLoaded query={query}>
          {(ports) =>
            ports.length === 0 ? (
              <Empty title="No server listens on any port">
                Start a server in the sandbox, for example <code>python3 -m http.server 8000</code>. Its port then
                appears here.
              </Empty>
            ) : (
              <Table
                label="Ports"
                columns={[
                  <th key="Port" className="number">
                    Port
                  </th>,
                  'Address',
                ]}
                rows={ports}
              >
                {(port) => <PortRow key={port} sandbox={sandbox} port={port} isBusy={isBusy} onMake={onMake} />}
              </Table>
            )
          }
        </WhenLoaded>
        <div className="card-body port-foot">
          <SelectField
            label="New links last"
            value={String(seconds)}
            onChange={(value) => setSeconds(Number(value))}
            options={lifetimes.map((each) => ({ value: String(each.seconds), label: each.label }))}
          />
          <OtherPort isBusy={isBusy} onMake={(port) => onMake(port, false)} />
        </div>
      </section>
      {links.length > 0 && <LinkList links={links} isBusy={isBusy} onEnd={(link) => void end(link)} />}
    </>
  )
}

const Resting = ({ sandbox }: TabProps) => {
  const { isBusy, act } = useChange(sandbox.id)
  return (
    <div className="card">
      <Empty
        title="Ports can be shown only while the sandbox is running"
        action={
          isPossible('start', sandbox) && (
            <Button disabled={isBusy} onClick={() => void act('Start', actions.start.run(sandbox.id))}>
              Start
            </Button>
          )
        }
      >
        The sandbox is {sandbox.state.replaceAll('_', ' ')} now.
      </Empty>
    </div>
  )
}

const PortsTab = ({ sandbox }: TabProps) => (
  <div className="stack">
    {sandbox.state === 'started' ? <Running sandbox={sandbox} /> : <Resting sandbox={sandbox} />}
    <PublicCard sandbox={sandbox} />
  </div>
)

export default PortsTab
