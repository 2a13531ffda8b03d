import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useRegionName } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock, CopyText } from '../../ui/copy.tsx'
import { Page, WhenLoaded } from '../../ui/page.tsx'
import { shownLines, shownText } from '../../ui/shown-text.ts'
import { isMoving, StateBadge } from '../../ui/state-badge.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { canActivate, canDeactivate } from './actions.ts'
import { BuildLog } from './build-log.tsx'
import type { Snapshot } from './search.ts'
import { useSnapshotActions } from './snapshot-dialogs.tsx'
import { ProgressText } from './snapshot-table.tsx'
import { imageSizeText, resourcesText, sourceText } from './texts.ts'
import { useSnapshot } from './use-snapshots.ts'

const Facts = ({ snapshot }: { snapshot: Snapshot }) => {
  const nameOf = useRegionName()
  const { id, ref, imageName, entrypoint, regionIds, sourceSandboxId, createdAt, lastUsedAt } = snapshot
  return (
    <div className="card">
      <dl className="facts card-body">
        <dt>Id</dt>
        <dd>
          <CopyText text={id} />
        </dd>
        <dt>Made from</dt>
        <dd>
          {sourceSandboxId === null ? (
            (imageName !== undefined && shownText(imageName)) || sourceText(snapshot)
          ) : (
            <Link to="/sandboxes/$sandboxId" params={{ sandboxId: sourceSandboxId }}>
              The sandbox {sourceSandboxId}
            </Link>
          )}
        </dd>
        {ref !== undefined && (
          <>
            <dt>Image kept here</dt>
            <dd className="mono">{shownText(ref)}</dd>
          </>
        )}
        <dt>Size</dt>
        <dd>{imageSizeText(snapshot)}</dd>
        <dt>A sandbox has</dt>
        <dd>{resourcesText(snapshot)}</dd>
        <dt>Entrypoint</dt>
        <dd>{entrypoint === null ? 'That of the image' : <code>{shownText(JSON.stringify(entrypoint))}</code>}</dd>
        <dt>Regions</dt>
        <dd>{regionIds === undefined ? 'All' : regionIds.map(nameOf).join(', ')}</dd>
        <dt>Created</dt>
        <dd>
          <TimeAgo time={createdAt} />
        </dd>
        <dt>Last used</dt>
        <dd>
          <TimeAgo time={lastUsedAt} />
        </dd>
      </dl>
    </div>
  )
}

const SnapshotPage = () => {
  const { snapshotId } = useParams({ strict: false })
  const navigate = useNavigate()
  const query = useSnapshot(snapshotId ?? '')
  const { begin, dialogs } = useSnapshotActions(() => void navigate({ to: '/snapshots' }))
  const snapshot = query.data
  return (
    <Page
      title={snapshot === undefined ? 'Snapshot' : shownText(snapshot.name)}
      description={
        snapshot && (
          <span className="row">
            <StateBadge state={snapshot.state} />
            <ProgressText snapshot={snapshot} />
          </span>
        )
      }
      actions={
        snapshot && (
          <>
            {canActivate(snapshot) && <Button onClick={() => begin('activate', snapshot)}>Activate</Button>}
            {canDeactivate(snapshot) && <Button onClick={() => begin('deactivate', snapshot)}>Deactivate…</Button>}
            <Button kind="danger" onClick={() => begin('delete', snapshot)}>
              Delete…
            </Button>
            <Button kind="primary" disabled={snapshot.state !== 'active'} onClick={() => begin('sandbox', snapshot)}>
              Create a sandbox from it
            </Button>
          </>
        )
      }
    >
      <WhenLoaded query={query}>
        {(found) => (
          <>
            {found.errorReason !== null && (
              <div className="notice danger lines" role="alert">
                {shownLines(found.errorReason)}
              </div>
            )}
            <Facts snapshot={found} />
            {found.buildInfo !== undefined && (
              <>
                <BuildLog
                  path={`/snapshots/${encodeURIComponent(found.id)}/build-logs`}
                  isMoving={isMoving(found.state)}
                />
                <section className="stack" aria-label="Dockerfile">
                  <h2>Dockerfile</h2>
                  <CodeBlock code={found.buildInfo.dockerfileContent} label="Copy the Dockerfile" />
                </section>
              </>
            )}
          </>
        )}
      </WhenLoaded>
      {dialogs}
    </Page>
  )
}

export default SnapshotPage
