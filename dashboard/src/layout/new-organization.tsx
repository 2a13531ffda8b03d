import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../api/client.ts'
import { useRegions } from '../api/use-regions.ts'
import { session } from '../session/session.ts'
import { FormDialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'

/** A dialog that makes an organization and then shows it in this browser tab. */
export const NewOrganizationDialog = ({ onClose }: { onClose: () => void }) => {
  const queries = useQueryClient()
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState('')
  const regions = useRegions()
  // Offers only the server's own regions. A new organization has no region yet and cannot use regions of other organizations.
  const shared = regions.data?.filter((region) => region.organizationId === null) ?? []
  const defaultRegionId = chosen || shared[0]?.id
  const make = async () => {
    if (defaultRegionId === undefined)
      throw new Error('This server has no region of its own, and each new organization needs one.')
    const { id } = await answerOf(control.POST('/organizations', { body: { name, defaultRegionId } as never }))
    await queries.invalidateQueries({ queryKey: ['organizations'] })
    onClose()
    session.organizationId = id
  }
  return (
    <FormDialog
      title="New organization"
      description="Each organization has its own sandboxes, keys and members."
      isOpen
      onClose={onClose}
      submit="Create"
      isSubmitDisabled={name.trim() === '' || regions.isPending}
      onSubmit={make}
    >
      <TextField label="Name" value={name} onChange={setName} maxLength={255} autoFocus />
      {shared.length > 1 && (
        <SelectField
          label="Default region"
          hint="New sandboxes run here unless another region is chosen. The default region cannot be changed later."
          value={defaultRegionId ?? ''}
          onChange={setChosen}
          options={shared.map((region) => ({ value: region.id, label: region.name }))}
        />
      )}
    </FormDialog>
  )
}
