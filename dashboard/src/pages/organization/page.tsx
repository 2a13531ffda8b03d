import { useIsOperator, useOrganization, useStanding } from '../../session/people.ts'
import { CopyText } from '../../ui/copy.tsx'
import { Page } from '../../ui/page.tsx'
import { TimeAgo, timeText } from '../../ui/time.tsx'
import { DangerCard } from './danger-card.tsx'
import { DefaultRegion } from './default-region.tsx'
import { Switches } from './switches.tsx'
import { TelemetryCard } from './telemetry-card.tsx'

const OrganizationPage = () => {
  const organization = useOrganization()
  const isOwner = useStanding()?.isOwner ?? false
  const isOperator = useIsOperator()
  if (organization === undefined)
    return (
      <Page title="Settings">
        <div className="waiting">Loading…</div>
      </Page>
    )
  return (
    <Page title="Settings" description="Settings of this organization, for all of its members.">
      {organization.suspended && (
        <div className="notice danger" role="alert">
          <strong>This organization is suspended</strong>
          {organization.suspendedUntil !== null && ` until ${timeText(organization.suspendedUntil)}`}. Nothing new can
          start, and running sandboxes are stopped {organization.suspensionCleanupGracePeriodHours} hours after the
          suspension began.
          {organization.suspensionReason !== null && (
            <div>
              Reason: <bdi>{organization.suspensionReason}</bdi>
            </div>
          )}
        </div>
      )}
      <section className="card" aria-label="About">
        <div className="card-body">
          <dl className="facts">
            <dt>Name</dt>
            <dd>
              <bdi>{organization.name}</bdi> {organization.personal && <span className="badge plain">Personal</span>}
            </dd>
            <dt>Id</dt>
            <dd>
              <CopyText text={organization.id} />
            </dd>
            <dt>Created</dt>
            <dd>
              <TimeAgo time={organization.createdAt} />
            </dd>
            <dt>Default region</dt>
            <dd>
              <DefaultRegion organization={organization} isOwner={isOwner} />
            </dd>
          </dl>
        </div>
      </section>
      <Switches organization={organization} isOperator={isOperator} />
      <TelemetryCard organization={organization} isOwner={isOwner} />
      {!organization.personal && <DangerCard organization={organization} isOwner={isOwner} />}
    </Page>
  )
}

export default OrganizationPage
