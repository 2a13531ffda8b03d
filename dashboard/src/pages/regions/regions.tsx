import { useState } from 'react'
import { type Region, useRegions } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { CopyText } from '../../ui/copy.tsx'
import { MenuItem, MenuLine } from '../../ui/menu.tsx'
import { WhenLoaded } from '../../ui/page.tsx'
import { RowMenu } from '../../ui/row-menu.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { Table, wide } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { type Addresses, addressLabels, addressNames } from './addresses.ts'
import { CredentialsDialog, RegionDialog } from './region-dialogs.tsx'
import { type Credential, credentialsOf, type RegionService, useOwnRegions } from './use-own-regions.ts'

type Asked = { action: 'change' | 'delete' | RegionService; region: Region }

const kinds = { shared: 'shared', dedicated: 'for you alone', custom: 'of the organization' } as const

const renewals: readonly { service: RegionService; address: keyof Addresses; label: string }[] = [
  { service: 'proxy', address: 'proxyUrl', label: 'New key of the proxy…' },
  { service: 'ssh-gateway', address: 'sshGatewayUrl', label: 'New key of the SSH gateway…' },
  { service: 'snapshot-manager', address: 'snapshotManagerUrl', label: 'New snapshot manager credentials…' },
]

const Row = ({ region, onAsk }: { region: Region; onAsk: (asked: Asked) => void }) => {
  const { id, name, regionType } = region
  const services = addressNames.filter((address) => region[address] !== null)
  return (
    <tr>
      <td className="name wrap-anywhere">{shownText(name)}</td>
      <td>
        <CopyText text={id} shown={id.length > 12 ? id.slice(0, 8) : id} />
      </td>
      <td>{kinds[regionType]}</td>
      <td className="wrap-anywhere wide-only">
        {services.length === 0 ? (
          <span className="muted">The server’s services</span>
        ) : (
          services.map((address) => (
            <div key={address} className="small">
              {addressLabels[address]}: {shownText(region[address] ?? '')}
            </div>
          ))
        )}
      </td>
      <td className="actions">
        {regionType === 'custom' && (
          <RowMenu name={name}>
            <MenuItem onSelect={() => onAsk({ action: 'change', region })}>Change…</MenuItem>
            {renewals
              .filter(({ address }) => region[address] !== null)
              .map(({ service, label }) => (
                <MenuItem key={service} onSelect={() => onAsk({ action: service, region })}>
                  {label}
                </MenuItem>
              ))}
            <MenuLine />
            <MenuItem isDanger onSelect={() => onAsk({ action: 'delete', region })}>
              Delete…
            </MenuItem>
          </RowMenu>
        )}
      </td>
    </tr>
  )
}

/** Lists the regions that the organization may use. The organization can change its own regions, but not those of the server. */
export const Regions = () => {
  const query = useRegions()
  const { make, change, remove, renew } = useOwnRegions()
  const [isMaking, setMaking] = useState(false)
  const [asked, setAsked] = useState<Asked>()
  const [credentials, setCredentials] = useState<readonly Credential[]>([])
  const close = () => {
    setMaking(false)
    setAsked(undefined)
  }
  const save = async (name: string, addresses: Partial<Addresses>) => {
    if (isMaking) setCredentials(credentialsOf(await make({ name, ...addresses })))
    else await change(asked!.region.id, addresses)
    close()
  }
  const renewed = renewals.find(({ service }) => service === asked?.action)?.service
  const name = shownText(asked?.region.name ?? '')
  return (
    <section className="stack" aria-labelledby="regions-title">
      <div className="row spread">
        <h2 id="regions-title">Regions</h2>
        <Button compact onClick={() => setMaking(true)}>
          Make region
        </Button>
      </div>
      <WhenLoaded query={query}>
        {(rows) => (
          <div className="card">
            <Table label="Regions" columns={['Name', 'Id', 'Kind', wide('Services')]} rows={rows}>
              {(region) => <Row key={region.id} region={region} onAsk={setAsked} />}
            </Table>
          </div>
        )}
      </WhenLoaded>
      {(isMaking || asked?.action === 'change') && (
        <RegionDialog region={asked?.region} onSave={save} onClose={close} />
      )}
      <CredentialsDialog credentials={credentials} onClose={() => setCredentials([])} />
      <Confirm
        title={`Make new credentials in ${name}?`}
        verb="Make new credentials"
        isOpen={renewed !== undefined}
        onClose={close}
        onConfirm={async () => setCredentials(await renew(asked!.region.id, renewed!))}
      >
        The old credentials are refused from now on. The service in this region does not work until it has the new
        credentials.
      </Confirm>
      <Confirm
        title={`Delete the region ${name}?`}
        verb="Delete"
        isOpen={asked?.action === 'delete'}
        onClose={close}
        onConfirm={async () => {
          await remove(asked!.region.id)
          toast(`${name} is deleted`)
        }}
      >
        The credentials of the region are refused from now on. A region that still has runners, sandboxes or volumes
        cannot be deleted.
      </Confirm>
    </section>
  )
}
