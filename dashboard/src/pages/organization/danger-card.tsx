import { useState } from 'react'
import { answerOf, control } from '../../api/client.ts'
import { useTurnAway } from '../../session/leave-organization.ts'
import type { Organization } from '../../session/people.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'

/** Buttons that leave or delete the organization. A personal organization can be neither left nor deleted. */
export const DangerCard = ({ organization, isOwner }: { organization: Organization; isOwner: boolean }) => {
  const [open, setOpen] = useState<'leave' | 'delete'>()
  const turnAway = useTurnAway()
  const params = { params: { path: { organizationId: organization.id } } } as never
  const end = async (call: Promise<{ response: Response }>) => {
    await answerOf(call)
    turnAway(organization.id)
  }
  return (
    <section className="card" aria-label="Leave or delete">
      <div className="card-head">
        <h2>Leave or delete</h2>
      </div>
      <div className="card-body">
        <div className="row spread">
          <span>You leave the organization, and your keys in it are deleted. Everything else stays.</span>
          <Button kind="danger" onClick={() => setOpen('leave')}>
            Leave…
          </Button>
        </div>
        {isOwner && (
          <div className="row spread">
            <span>The organization is deleted, with everything that is in it.</span>
            <Button kind="danger" onClick={() => setOpen('delete')}>
              Delete the organization…
            </Button>
          </div>
        )}
      </div>
      <Confirm
        title="Leave this organization?"
        verb="Leave"
        isOpen={open === 'leave'}
        onClose={() => setOpen(undefined)}
        onConfirm={() => end(control.POST('/organizations/{organizationId}/leave', params))}
      >
        <p>
          You can no longer use <strong className="wrap-anywhere">{organization.name}</strong>, and your keys here are
          deleted at once. To come back, you need an invitation.
        </p>
      </Confirm>
      <Confirm
        title="Delete this organization?"
        verb="Delete everything"
        typed={organization.name}
        isOpen={open === 'delete'}
        onClose={() => setOpen(undefined)}
        onConfirm={() => end(control.DELETE('/organizations/{organizationId}', params))}
      >
        <p>
          All sandboxes of <strong className="wrap-anywhere">{organization.name}</strong> are destroyed with their
          files, and its snapshots, volumes, secrets and keys are deleted. Nobody can undo this.
        </p>
      </Confirm>
    </section>
  )
}
