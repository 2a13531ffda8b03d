import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useRegionName } from '../../api/use-regions.ts'
import { type Organization, useIsOperator, useOrganization } from '../../session/people.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { Empty, Page, WhenLoaded } from '../../ui/page.tsx'
import { Bar } from './bar.tsx'
import { QuotaDialog } from './quota-dialog.tsx'
import { organizationFields, regionFields } from './quota-form.ts'
import { Rates } from './rates.tsx'
import './usage.css'

type Usage = AnswerTo<'/organizations/{organizationId}/usage', 'get'>
type RegionUsage = Usage['regionUsage'][number]

const RegionCard = ({
  region,
  name,
  organization,
  onChange,
}: {
  region: RegionUsage
  name: string
  organization: Organization | undefined
  onChange: (() => void) | undefined
}) => {
  const most = {
    cpu: region.maxCpuPerSandbox ?? organization?.maxCpuPerSandbox,
    memory: region.maxMemoryPerSandbox ?? organization?.maxMemoryPerSandbox,
    disk: region.maxDiskPerSandbox ?? organization?.maxDiskPerSandbox,
  }
  return (
    <section className="card" aria-label={`Region ${name}`}>
      <div className="card-head">
        <h2 className="wrap-anywhere">
          <bdi>{name}</bdi> <span className="muted small">{region.sandboxClass}</span>
        </h2>
        {onChange !== undefined && (
          <Button compact onClick={onChange}>
            Change…
          </Button>
        )}
      </div>
      <div className="card-body">
        <Bar name="CPU" used={region.currentCpuUsage} allowed={region.totalCpuQuota} unit="cores" />
        <Bar name="Memory" used={region.currentMemoryUsage} allowed={region.totalMemoryQuota} unit="GiB" />
        <Bar name="Disk" used={region.currentDiskUsage} allowed={region.totalDiskQuota} unit="GiB" />
        {region.totalGpuQuota > 0 && <Bar name="GPUs" used={region.currentGpuUsage} allowed={region.totalGpuQuota} />}
        <p className="muted small">
          One sandbox may have {most.cpu} cores, {most.memory} GiB of memory and {most.disk} GiB of disk
          {region.maxDiskPerNonEphemeralSandbox !== null &&
            `, or ${region.maxDiskPerNonEphemeralSandbox} GiB if the sandbox is kept after it stops`}
          .
        </p>
      </div>
    </section>
  )
}

const UsagePage = () => {
  const organizationId = useOrganizationId()
  const organization = useOrganization()
  const isOperator = useIsOperator()
  const queries = useQueryClient()
  const [changing, setChanging] = useState<RegionUsage | 'organization'>()
  const usage = useQuery({
    queryKey: [organizationId, 'usage'],
    queryFn: () =>
      answerOf(
        control.GET('/organizations/{organizationId}/usage', { params: { path: { organizationId } } } as never),
      ) as Promise<Usage>,
  })
  const secrets = useQuery({
    queryKey: [organizationId, 'secrets', 'count'],
    queryFn: async () => (await answerOf(control.GET('/secret'))).length,
  })
  const nameOf = useRegionName()
  const save = async (changed: Record<string, number>) => {
    const call =
      changing === 'organization'
        ? control.PATCH('/organizations/{organizationId}/quota', {
            params: { path: { organizationId } },
            body: changed,
          } as never)
        : control.PATCH('/organizations/{organizationId}/quota/{regionId}', {
            params: { path: { organizationId, regionId: changing!.regionId } },
            body: { sandboxClass: changing!.sandboxClass, ...changed },
          } as never)
    await answerOf(call as Promise<{ response: Response }>)
    void queries.invalidateQueries({ queryKey: [organizationId, 'usage'] })
    void queries.invalidateQueries({ queryKey: ['organizations'] })
  }
  return (
    <Page
      title="Usage and quotas"
      description={
        isOperator
          ? 'What this organization uses, and its quotas. You operate this server, and can change the quotas.'
          : 'What this organization uses, and its quotas. The operator of the server can change the quotas.'
      }
    >
      <WhenLoaded query={usage}>
        {(data) => (
          <div className="usage-grid">
            {data.regionUsage.map((region) => (
              <RegionCard
                key={`${region.regionId} ${region.sandboxClass}`}
                region={region}
                name={nameOf(region.regionId)}
                organization={organization}
                onChange={isOperator ? () => setChanging(region) : undefined}
              />
            ))}
            {data.regionUsage.length === 0 && (
              <div className="card">
                <Empty title="No region is open to this organization">
                  The operator of the server can give this organization a quota in a region.
                </Empty>
              </div>
            )}
            <section className="card" aria-label="Organization">
              <div className="card-head">
                <h2>Organization</h2>
                {isOperator && (
                  <Button compact onClick={() => setChanging('organization')}>
                    Change…
                  </Button>
                )}
              </div>
              <div className="card-body">
                <Bar name="Snapshots" used={data.currentSnapshotUsage} allowed={data.totalSnapshotQuota} />
                <Bar name="Volumes" used={data.currentVolumeUsage} allowed={data.totalVolumeQuota} />
                {secrets.data !== undefined && organization !== undefined && (
                  <Bar name="Secrets" used={secrets.data} allowed={organization.secretQuota} />
                )}
                {organization !== undefined && (
                  <>
                    <h3>Rate limits</h3>
                    <Rates organization={organization} />
                  </>
                )}
              </div>
            </section>
          </div>
        )}
      </WhenLoaded>
      {changing === 'organization' && usage.data !== undefined && (
        <QuotaDialog
          title="Quotas of the organization"
          description="Existing sandboxes stay, even if they use more than the new quota. An empty rate limit means the server’s default."
          fields={organizationFields}
          values={{
            ...organization,
            snapshotQuota: usage.data.totalSnapshotQuota,
            volumeQuota: usage.data.totalVolumeQuota,
          }}
          onSave={save}
          onClose={() => setChanging(undefined)}
        />
      )}
      {changing !== undefined && changing !== 'organization' && (
        <QuotaDialog
          title={`Quotas in ${nameOf(changing.regionId)}`}
          description={`The quotas apply to sandboxes of the class ${changing.sandboxClass}. Existing sandboxes stay.`}
          fields={regionFields}
          values={changing}
          onSave={save}
          onClose={() => setChanging(undefined)}
        />
      )}
    </Page>
  )
}

export default UsagePage
