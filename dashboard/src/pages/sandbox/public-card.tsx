import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { SettingCard } from './settings/setting-card.tsx'
import { useChange } from './use-change.ts'

/** A switch that makes the previews of the sandbox public, so that everybody can open them, or private. */
export const PublicCard = ({ sandbox }: { sandbox: Sandbox }) => {
  const [isAsking, setAsking] = useState(false)
  const { change, act, isBusy } = useChange(sandbox.id)
  const make = (isPublic: boolean) =>
    answerOf(
      control.POST('/sandbox/{sandboxIdOrName}/public/{isPublic}', {
        params: { path: { sandboxIdOrName: sandbox.id, isPublic: String(isPublic) } },
      } as never),
    )
  return (
    <SettingCard
      title={sandbox.public ? 'Previews are public' : 'Previews are private'}
      hint={
        sandbox.public
          ? 'Anyone who knows the address of a preview can open the server on its port. No token is needed.'
          : 'A preview opens only with a signed link, a token or a key. The plain address alone is not enough.'
      }
    >
      <div>
        {sandbox.public ? (
          <Button disabled={isBusy} onClick={() => void act('Closing the previews', make(false))}>
            Make previews private
          </Button>
        ) : (
          <Button onClick={() => setAsking(true)}>Make previews public…</Button>
        )}
      </div>
      <Confirm
        title={`Open the previews of ${sandbox.name} to everybody?`}
        verb="Make public"
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        onConfirm={() => change(make(true))}
      >
        Anyone who knows the address of a preview can open the server on that port, without signing in. This applies to
        all ports. The toolbox stays closed.
      </Confirm>
    </SettingCard>
  )
}
