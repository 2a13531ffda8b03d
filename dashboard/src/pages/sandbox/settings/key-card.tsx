import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm } from '../../../ui/confirm.tsx'
import { toast } from '../../../ui/toast.tsx'
import { useChange } from '../use-change.ts'
import { SettingCard } from './setting-card.tsx'

/** A button that replaces the key for signed download and upload URLs. Earlier URLs stop working. */
export const KeyCard = ({ sandbox }: { sandbox: Sandbox }) => {
  const [isAsking, setAsking] = useState(false)
  const { change } = useChange(sandbox.id)
  const rotate = async () => {
    await change(
      answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/signing-key/rotate', {
          params: { path: { sandboxIdOrName: sandbox.id } },
          parseAs: 'text',
        } as never),
      ),
    )
    toast('The signing key was replaced', 'Addresses that were signed with the old key no longer work.')
  }
  return (
    <SettingCard
      title="Signing key"
      hint="This key signs addresses with which a single file can be downloaded or uploaded."
    >
      <div>
        <Button onClick={() => setAsking(true)}>Make a new key…</Button>
      </div>
      <Confirm
        title="Make a new signing key?"
        verb="Make a new key"
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={rotate}
      >
        All signed file addresses of this sandbox stop working at once.
      </Confirm>
    </SettingCard>
  )
}
