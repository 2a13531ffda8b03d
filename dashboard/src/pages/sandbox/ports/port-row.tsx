import { useQuery } from '@tanstack/react-query'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'
import { Button } from '../../../ui/button.tsx'
import { CopyText } from '../../../ui/copy.tsx'
import { isWebAddress } from '../words.ts'

/** The unsigned preview address of a port. Without a credential it works only if the sandbox's previews are public. */
const useAddress = (sandboxId: string, port: number) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'preview-url', sandboxId, port],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const { url } = await answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/ports/{port}/preview-url', {
          params: { path: { sandboxIdOrName: sandboxId, port: String(port) } },
          signal,
        }),
      )
      return url
    },
  })
}

type PortRowProps = {
  sandbox: Sandbox
  port: number
  isBusy: boolean
  onMake: (port: number, isOpened: boolean) => void
}

/** Shows a port of the sandbox on which a program listens. */
export const PortRow = ({ sandbox, port, isBusy, onMake }: PortRowProps) => {
  const { data: url } = useAddress(sandbox.id, port)
  return (
    <tr>
      <td className="number">
        <strong>{port}</strong>
      </td>
      <td className="port-address">
        {url !== undefined && isWebAddress(url) && sandbox.public ? (
          <a href={url} target="_blank" rel="noopener noreferrer">
            {url}
          </a>
        ) : (
          url !== undefined && <CopyText text={url} />
        )}
      </td>
      <td>
        <div className="row port-actions">
          <Button compact disabled={isBusy} aria-label={`Open port ${port}`} onClick={() => onMake(port, true)}>
            Open
          </Button>
          <Button
            compact
            disabled={isBusy}
            aria-label={`Make a link to port ${port}`}
            onClick={() => onMake(port, false)}
          >
            Make a link
          </Button>
        </div>
      </td>
    </tr>
  )
}
