import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useRegionName, useRegions } from '../../api/use-regions.ts'
import type { Organization } from '../../session/people.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'

/** Shows the default region of the organization. If the organization has no default region yet, an owner can set it, once. */
export const DefaultRegion = ({ organization, isOwner }: { organization: Organization; isOwner: boolean }) => {
  const queries = useQueryClient()
  const [isOpen, setOpen] = useState(false)
  const [chosen, setChosen] = useState('')
  const regions = useRegions()
  const nameOf = useRegionName()
  const { defaultRegionId } = organization
  if (defaultRegionId != null) return <bdi>{nameOf(defaultRegionId)}</bdi>
  const regionId = chosen || regions.data?.[0]?.id
  const save = async () => {
    await answerOf(
      control.PATCH('/organizations/{organizationId}/default-region', {
        params: { path: { organizationId: organization.id } },
        body: { defaultRegionId: regionId },
      } as never),
    )
    await queries.invalidateQueries({ queryKey: ['organizations'] })
    toast('The default region is set')
    setOpen(false)
  }
  return (
    <span className="row">
      <span className="muted">None yet</span>
      {isOwner && (
        <Button compact onClick={() => setOpen(true)}>
          Choose…
        </Button>
      )}
      <FormDialog
        title="Choose the default region"
        description="New sandboxes run there unless another region is chosen. The default region can be chosen only once."
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        submit="Choose"
        isSubmitDisabled={regionId === undefined}
        onSubmit={save}
      >
        <SelectField
          label="Region"
          value={regionId ?? ''}
          onChange={setChosen}
          options={(regions.data ?? []).map(({ id, name }) => ({ value: id, label: name }))}
        />
      </FormDialog>
    </span>
  )
}
