import { useState } from 'react'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorNotice } from '../../ui/error-notice.tsx'
import { isUnfinished } from './provider-form.ts'

type Answer = AnswerTo<'/organizations/{organizationId}/identity-providers/test-connection', 'post'>

/** Asks the server whether it can reach the issuer, and shows the result. */
export const TestConnection = ({ issuerUrl }: { issuerUrl: string }) => {
  const organizationId = useOrganizationId()
  const [isBusy, setBusy] = useState(false)
  const [found, setFound] = useState<{ issuerUrl: string; answer?: Answer; error?: unknown }>()
  const test = async () => {
    setBusy(true)
    try {
      const answer = (await answerOf(
        control.POST('/organizations/{organizationId}/identity-providers/test-connection', {
          params: { path: { organizationId } },
          body: { issuerUrl: issuerUrl.trim() },
        } as never),
      )) as Answer
      setFound({ issuerUrl, answer })
    } catch (error) {
      setFound({ issuerUrl, error })
    } finally {
      setBusy(false)
    }
  }
  // The result is shown only while the field contains the issuer URL that was tested.
  const shown = found?.issuerUrl === issuerUrl ? found : undefined
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div>
        <Button compact disabled={isBusy || isUnfinished(issuerUrl)} onClick={() => void test()}>
          {isBusy ? 'Asking the provider…' : 'Test connection'}
        </Button>
      </div>
      <div role="status">
        {shown?.error !== undefined && <ErrorNotice error={shown.error} />}
        {shown?.answer?.success === true && (
          <div className="notice ok">
            The provider answers, as <bdi>{shown.answer.issuer ?? issuerUrl}</bdi>. This test cannot check the client id
            and the secret; the first sign-in checks them.
          </div>
        )}
        {shown?.answer?.success === false && (
          <div className="notice danger">
            The provider cannot be used:{' '}
            <bdi>{shown.answer.error ?? 'the provider sent an answer that this server does not understand'}</bdi>
          </div>
        )}
      </div>
    </div>
  )
}
