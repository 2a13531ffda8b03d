import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { FormDialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { WhenLoaded } from '../../ui/page.tsx'
import { toast } from '../../ui/toast.tsx'

type Provider = AnswerTo<'/users/account-providers', 'get'>[number]

const LinkDialog = ({ provider, onClose }: { provider: Provider; onClose: () => void }) => {
  const queries = useQueryClient()
  const [userId, setUserId] = useState('')
  const { linked, displayName } = provider
  const send = async () => {
    const call = linked
      ? control.DELETE('/users/linked-accounts/{provider}/{providerUserId}', {
          params: { path: { provider: provider.provider, providerUserId: userId.trim() } },
        } as never)
      : control.POST('/users/linked-accounts', { body: { provider: provider.provider, userId: userId.trim() } })
    await answerOf(call as Promise<{ response: Response }>)
    void queries.invalidateQueries({ queryKey: ['account-providers'] })
    toast(linked ? `You can no longer sign in with ${displayName}` : `You can sign in with ${displayName} now`)
    onClose()
  }
  return (
    <FormDialog
      title={linked ? `Unlink ${displayName}` : `Link ${displayName}`}
      description={
        linked
          ? 'You can then no longer sign in with this account. Your last way to sign in cannot be unlinked.'
          : 'First try to sign in with that account once, so that this server knows it. Both accounts must have the same verified e-mail address.'
      }
      isOpen
      onClose={onClose}
      submit={linked ? 'Unlink' : 'Link'}
      isDanger={linked}
      isSubmitDisabled={userId.trim() === ''}
      onSubmit={send}
    >
      <TextField
        label={`Your id at ${displayName}`}
        hint="The subject (sub) of the account at the identity provider. This server cannot show it."
        value={userId}
        onChange={setUserId}
        maxLength={255}
      />
    </FormDialog>
  )
}

/** Lists the identity providers of the server, says which of them sign in this user, and links or unlinks them. */
export const LinkedAccounts = () => {
  const [open, setOpen] = useState<Provider>()
  const query = useQuery({
    queryKey: ['account-providers'],
    queryFn: () => answerOf(control.GET('/users/account-providers')),
  })
  return (
    <section className="card" aria-label="Ways to sign in">
      <div className="card-head">
        <h2>Ways to sign in</h2>
      </div>
      <div className="card-body">
        <WhenLoaded query={query}>
          {(providers) =>
            providers.length === 0 ? (
              <p className="muted">
                You sign in with a password of this server, or with the single sign-on of an organization. The operator
                of the server can give you a new password.
              </p>
            ) : (
              providers.map((provider) => (
                <div key={provider.provider} className="row spread">
                  <span className="wrap-anywhere">
                    <bdi>{provider.displayName}</bdi>{' '}
                    <span className={provider.linked ? 'badge ok' : 'badge'}>
                      {provider.linked ? 'Linked' : 'Not linked'}
                    </span>
                  </span>
                  <Button
                    compact
                    aria-label={`${provider.linked ? 'Unlink' : 'Link'} ${provider.displayName}`}
                    onClick={() => setOpen(provider)}
                  >
                    {provider.linked ? 'Unlink…' : 'Link…'}
                  </Button>
                </div>
              ))
            )
          }
        </WhenLoaded>
      </div>
      {open !== undefined && <LinkDialog provider={open} onClose={() => setOpen(undefined)} />}
    </section>
  )
}
