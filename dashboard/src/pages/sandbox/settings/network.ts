// Turns the network policy of a sandbox into the fields of a form, and back.
import type { BodyOf, Sandbox } from '../../../api/client.ts'

export type NetworkMode = 'open' | 'closed' | 'listed'

/** `domains` and `addresses` have one item in each line. */
export type NetworkDraft = { mode: NetworkMode; domains: string; addresses: string }

type Saved = Pick<Sandbox, 'networkBlockAll' | 'networkAllowList' | 'domainAllowList'>

const linesOf = (list: string | undefined) =>
  (list ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .join('\n')

const listOf = (lines: string) =>
  lines
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '')
    .join(',')

export const readNetwork = ({ networkBlockAll, networkAllowList, domainAllowList }: Saved): NetworkDraft => {
  const domains = linesOf(domainAllowList)
  const addresses = linesOf(networkAllowList)
  if (networkBlockAll) return { mode: 'closed', domains, addresses }
  return { mode: domains === '' && addresses === '' ? 'open' : 'listed', domains, addresses }
}

/** Returns an error message if the mode is `listed` but both lists are empty, because the server would then allow all traffic. */
export const networkProblem = ({ mode, domains, addresses }: NetworkDraft): string | undefined =>
  mode === 'listed' && listOf(domains) === '' && listOf(addresses) === ''
    ? 'Name at least one domain or address, or choose another policy.'
    : undefined

export const networkBody = ({
  mode,
  domains,
  addresses,
}: NetworkDraft): BodyOf<'/sandbox/{sandboxIdOrName}/network-settings', 'post'> => {
  if (mode === 'closed') return { networkBlockAll: true }
  if (mode === 'open') return { networkBlockAll: false }
  return { networkBlockAll: false, domainAllowList: listOf(domains), networkAllowList: listOf(addresses) }
}
