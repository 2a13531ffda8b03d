import { useState } from 'react'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { session } from '../../../session/session.ts'
import { toastError } from '../../../ui/toast.tsx'
import { isWebAddress } from '../words.ts'
import { type SignedLink, withoutEnded } from './signed-links.ts'

/** The signed links of a sandbox, and the calls that make and revoke them. */
export const useLinks = (sandbox: Sandbox) => {
  const [links, setLinks] = useState<readonly SignedLink[]>([])
  const [isBusy, setBusy] = useState(false)
  const path = { sandboxIdOrName: sandbox.id }

  const make = async (port: number, seconds: number, isOpened: boolean): Promise<void> => {
    setBusy(true)
    try {
      const made = await answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/ports/{port}/signed-preview-url', {
          params: { path: { ...path, port: String(port) }, query: { expiresInSeconds: seconds } },
        }),
      )
      const now = session.now()
      setLinks((before) => [{ ...made, endsAt: now + seconds * 1000 }, ...withoutEnded(before, now)])
      // If the browser blocks the new window, the user can still open the link from the list.
      if (isOpened && isWebAddress(made.url)) window.open(made.url, '_blank', 'noopener,noreferrer')
    } catch (error) {
      toastError(`A link to port ${port} could not be made`, error)
    } finally {
      setBusy(false)
    }
  }
  const end = async ({ port, token }: SignedLink): Promise<void> => {
    setBusy(true)
    try {
      await answerOf(
        control.POST('/sandbox/{sandboxIdOrName}/ports/{port}/signed-preview-url/{token}/expire', {
          params: { path: { ...path, port: String(port), token } },
        }),
      )
      setLinks((before) => before.filter((link) => link.token !== token))
    } catch (error) {
      toastError('The link could not be ended', error)
    } finally {
      setBusy(false)
    }
  }
  return { links: withoutEnded(links, session.now()), isBusy, make, end }
}
