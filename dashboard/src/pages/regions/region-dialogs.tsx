import { useState } from 'react'
import type { Region } from '../../api/use-regions.ts'
import { Button } from '../../ui/button.tsx'
import { SecretOnce } from '../../ui/copy.tsx'
import { Dialog, FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { shownText } from '../../ui/shown-text.ts'
import { type Addresses, addressesOf, addressLabels, addressNames, changedAddresses } from './addresses.ts'
import type { Credential } from './use-own-regions.ts'

type RegionDialogProps = {
  /** The region to change. If undefined, the dialog makes a new one. */
  region: Region | undefined
  onSave: (name: string, addresses: Partial<Addresses>) => Promise<unknown>
  onClose: () => void
}

/** Makes a region of the organization, or changes the addresses of a region's services. */
export const RegionDialog = ({ region, onSave, onClose }: RegionDialogProps) => {
  const [name, setName] = useState(region?.name ?? '')
  const [form, setForm] = useState(() => addressesOf(region))
  return (
    <FormDialog
      title={region === undefined ? 'Make a region' : `Change ${shownText(region.name)}`}
      description="Enter the addresses of services that your organization runs itself in this region. You can leave each of them empty."
      isOpen
      onClose={onClose}
      submit={region === undefined ? 'Make' : 'Change'}
      isSubmitDisabled={name.trim().length < 2}
      onSubmit={() => onSave(name.trim(), changedAddresses(region, form))}
    >
      {region === undefined && (
        <TextField
          label="Name"
          hint="Letters, digits, dots, dashes and underscores"
          maxLength={255}
          value={name}
          onChange={setName}
        />
      )}
      {addressNames.map((address) => (
        <TextField
          key={address}
          label={addressLabels[address]}
          type="url"
          spellCheck={false}
          maxLength={2048}
          value={form[address]}
          onChange={(value) => setForm({ ...form, [address]: value })}
        />
      ))}
    </FormDialog>
  )
}

/** Shows new credentials. The server does not send them a second time. */
export const CredentialsDialog = ({
  credentials,
  onClose,
}: {
  credentials: readonly Credential[]
  onClose: () => void
}) => (
  <Dialog title="New credentials" isOpen={credentials.length > 0} onClose={onClose}>
    {credentials.map(({ what, value }) => (
      <SecretOnce key={what} what={what} value={value} />
    ))}
    <div className="dialog-actions">
      <Button kind="primary" onClick={onClose}>
        Done
      </Button>
    </div>
  </Dialog>
)
