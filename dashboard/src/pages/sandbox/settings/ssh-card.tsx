import { type FormEvent, useState } from 'react'
import { type AnswerTo, answerOf, control, type Sandbox } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { Confirm } from '../../../ui/confirm.tsx'
import { SecretOnce } from '../../../ui/copy.tsx'
import { ErrorNotice } from '../../../ui/error-notice.tsx'
import { TextField } from '../../../ui/field.tsx'
import { TimeAgo } from '../../../ui/time.tsx'
import { useChange } from '../use-change.ts'
import { SettingCard } from './setting-card.tsx'

type Access = AnswerTo<'/sandbox/{sandboxIdOrName}/ssh-access', 'post'>

const accessTo = (sandboxId: string, query: { token?: string; expiresInMinutes?: number }) =>
  ({ params: { path: { sandboxIdOrName: sandboxId }, query } }) as never

/** Makes and revokes tokens for SSH access to the sandbox. */
export const SshCard = ({ sandbox }: { sandbox: Sandbox }) => {
  const [minutes, setMinutes] = useState('60')
  const [made, setMade] = useState<Access>()
  const [error, setError] = useState<unknown>()
  const [isRevoking, setRevoking] = useState(false)
  const { change, act, isBusy } = useChange(sandbox.id)
  const isRight = /^[1-9]\d{0,4}$/.test(minutes) && Number(minutes) <= 10_080
  const make = async (event: FormEvent) => {
    event.preventDefault()
    if (!isRight || isBusy) return
    setError(undefined)
    try {
      const expiresInMinutes = Number(minutes)
      const call = control.POST('/sandbox/{sandboxIdOrName}/ssh-access', accessTo(sandbox.id, { expiresInMinutes }))
      setMade((await change(answerOf(call))) as Access)
    } catch (caught) {
      setError(caught)
    }
  }
  const revoke = (query: { token?: string }) =>
    answerOf(control.DELETE('/sandbox/{sandboxIdOrName}/ssh-access', accessTo(sandbox.id, query)))
  return (
    <SettingCard title="SSH access" hint="Everybody who has a token can open a shell in this sandbox.">
      <form className="row align-end" onSubmit={(event) => void make(event)}>
        <TextField
          label="Minutes until the token expires"
          inputMode="numeric"
          error={isRight ? undefined : 'From 1 to 10080'}
          value={minutes}
          onChange={(text) => setMinutes(text.trim())}
        />
        <Button type="submit" disabled={!isRight || isBusy}>
          Make a token
        </Button>
        <Button kind="danger" onClick={() => setRevoking(true)}>
          Revoke all…
        </Button>
      </form>
      {error !== undefined && <ErrorNotice error={error} />}
      {made !== undefined && (
        <>
          <SecretOnce value={made.sshCommand} what="this command" />
          <div className="row">
            <span className="muted">
              Its token ends <TimeAgo time={made.expiresAt} />.
            </span>
            <Button
              compact
              disabled={isBusy}
              onClick={() =>
                void act(
                  'Revoke',
                  revoke({ token: made.token }).then(() => setMade(undefined)),
                )
              }
            >
              Revoke it now
            </Button>
          </div>
        </>
      )}
      <Confirm
        title={`Revoke all SSH tokens of ${sandbox.name}?`}
        verb="Revoke all"
        isOpen={isRevoking}
        onClose={() => setRevoking(false)}
        onConfirm={async () => {
          await change(revoke({}))
          setMade(undefined)
        }}
      >
        All SSH tokens of this sandbox stop working, and all its SSH sessions end.
      </Confirm>
    </SettingCard>
  )
}
