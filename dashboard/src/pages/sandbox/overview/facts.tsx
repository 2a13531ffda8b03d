import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Sandbox } from '../../../api/client.ts'
import { CopyText } from '../../../ui/copy.tsx'
import { shownName } from '../../../ui/shown-text.ts'
import { TimeAgo } from '../../../ui/time.tsx'
import { networkText, timerNames, timerText } from '../words.ts'

const Fact = ({ name, children }: { name: string; children: ReactNode }) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)

const Origin = ({ sandbox: { snapshot, buildInfo, forkKind } }: { sandbox: Sandbox }) => {
  if (forkKind !== undefined) return 'A fork of another sandbox'
  if (snapshot !== undefined) return shownName(snapshot)
  return buildInfo === undefined ? '–' : 'An image of its own definition'
}

/** Maximum number of labels that are shown. A sandbox may have a thousand labels. */
const mostLabels = 20

const Labels = ({ labels }: Pick<Sandbox, 'labels'>) => {
  const pairs = Object.entries(labels)
  return (
    <>
      {pairs.length === 0 && 'None'}
      {pairs.slice(0, mostLabels).map(([key, value]) => (
        <div key={key}>
          <code>{shownName(key, 100)}</code> ={' '}
          {value === '' ? <span className="muted">empty</span> : shownName(value, 200)}
        </div>
      ))}
      {pairs.length > mostLabels && <div className="muted">and {pairs.length - mostLabels} more</div>}
    </>
  )
}

/** Shows the settings that a user rarely changes, all on one card. */
export const Facts = ({ sandbox }: { sandbox: Sandbox }) => {
  const { cpu, memory, disk, volumes, autoDestroyAt } = sandbox
  const names = Object.keys(sandbox.env).sort()
  return (
    <section className="card" aria-labelledby="facts">
      <div className="card-head">
        <h2 id="facts">About</h2>
        <Link to="/sandboxes/$sandboxId/$tab" params={{ sandboxId: sandbox.id, tab: 'settings' }}>
          Change
        </Link>
      </div>
      <dl className="card-body facts">
        <Fact name="Made from">
          <Origin sandbox={sandbox} />
        </Fact>
        <Fact name="Size">
          {cpu} CPU · {memory} GiB memory · {disk} GiB disk
        </Fact>
        <Fact name="Region">{sandbox.target}</Fact>
        <Fact name="Runner">{sandbox.runnerId === undefined ? '–' : <CopyText text={sandbox.runnerId} />}</Fact>
        <Fact name="User">
          <code>{sandbox.user}</code>
        </Fact>
        <Fact name="Created">
          <TimeAgo time={sandbox.createdAt} />
        </Fact>
        <Fact name="Last activity">
          <TimeAgo time={sandbox.lastActivityAt} />
        </Fact>
        <Fact name="Timers">
          {timerNames.map((name) => (
            <div key={name}>{timerText[name](sandbox[name])}</div>
          ))}
          {autoDestroyAt !== undefined && (
            <div>
              Is deleted <TimeAgo time={autoDestroyAt} />
            </div>
          )}
        </Fact>
        <Fact name="Network">{networkText(sandbox)}</Fact>
        <Fact name="Previews">
          {sandbox.public ? 'Public: everybody who knows an address' : 'Private: a token or a signed link is needed'}
        </Fact>
        <Fact name="Labels">
          <Labels labels={sandbox.labels} />
        </Fact>
        <Fact name="Variables">
          {names.length === 0 ? 'None' : <code className="wrap-anywhere">{shownName(names.join(', '), 2000)}</code>}
        </Fact>
        <Fact name="Volumes">
          {volumes.length === 0
            ? 'None'
            : volumes.map(({ volumeId, mountPath, subpath }) => (
                <div key={mountPath}>
                  <code>{shownName(mountPath)}</code> <CopyText text={volumeId} shown={volumeId.slice(0, 8)} />
                  {subpath !== undefined && <span className="muted"> only {shownName(subpath)}</span>}
                </div>
              ))}
        </Fact>
      </dl>
    </section>
  )
}
