import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/confirm.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { TimeAgo } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'

type PendingLink = AnswerTo<'/users/me/pending-sso-links', 'get'>[number]

/**
 * Lists accounts at identity providers that can sign in as this user after the user's confirmation. Draws nothing if there are no
 * such accounts.
 */
export const PendingLinks = () => {
  const queries = useQueryClient()
  const [open, setOpen] = useState<{ link: PendingLink; what: 'confirm' | 'reject' }>()
  const { data = [], error } = useQuery({
    queryKey: ['pending-sso-links'],
    queryFn: () => answerOf(control.GET('/users/me/pending-sso-links')),
  })
  const answer = async () => {
    const { link, what } = open!
    const path = { params: { path: { id: link.id } } } as never
    if (what === 'confirm') await answerOf(control.POST('/users/me/pending-sso-links/{id}/confirm', path))
    else await answerOf(control.DELETE('/users/me/pending-sso-links/{id}', path))
    void queries.invalidateQueries({ queryKey: ['pending-sso-links'] })
    toast(what === 'confirm' ? `You can sign in with ${link.idpName} now` : 'The request is rejected')
  }
  if (error != null) return <ErrorNotice error={error} />
  return (
    <>
      {data.map((link) => (
        <section key={link.id} className="notice warn stack" aria-label="Sign-in that waits for you">
          <div>
            Somebody has signed in with{' '}
            <strong>
              <bdi>{link.idpName}</bdi>
            </strong>
            {link.providerEmail !== null && (
              <>
                {' '}
                as <bdi>{link.providerEmail}</bdi>
              </>
            )}{' '}
            and asks to be you, <TimeAgo time={link.createdAt} />. Was it you? This ends{' '}
            <TimeAgo time={link.expiresAt} />.
          </div>
          <div className="row">
            <Button compact onClick={() => setOpen({ link, what: 'confirm' })}>
              Confirm…
            </Button>
            <Button compact kind="danger" onClick={() => setOpen({ link, what: 'reject' })}>
              Reject…
            </Button>
          </div>
        </section>
      ))}
      <Confirm
        title={open?.what === 'reject' ? 'Reject this sign-in?' : 'Was it you?'}
        verb={open?.what === 'reject' ? 'Reject' : 'Yes, it was me'}
        isOpen={open !== undefined}
        onClose={() => setOpen(undefined)}
        onConfirm={answer}
      >
        {open?.what === 'reject' ? (
          <p>
            The account at <strong className="wrap-anywhere">{open.link.idpName}</strong> cannot sign in as you. Your
            own account does not change.
          </p>
        ) : (
          <p>
            From now on, anyone who signs in with this account at{' '}
            <strong className="wrap-anywhere">{open?.link.idpName}</strong> is signed in as you, in all of your
            organizations. The operator of that identity provider can do this, too. Confirm only if you started this
            sign-in, and if you trust the operator.
          </p>
        )}
      </Confirm>
    </>
  )
}
