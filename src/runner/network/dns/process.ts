// Main program of Alcove's DNS resolver. The process has no privileges, because it reads untrusted input. If the process crashes,
// sandboxes only get no DNS answers for a moment.
import { Resolver } from 'node:dns/promises'
import { startDnsServer } from './server.ts'
import type { FromResolver, ToResolver } from './words.ts'

const mostWaiting = 4096

const domains = new Map<string, readonly string[]>()
const waiting = new Map<number, (addresses: readonly string[] | null) => void>()
let nextId = 1

const say = (word: FromResolver) => process.send?.(word)

const open = (sandbox: string, name: string, addresses: readonly string[], seconds: number) =>
  new Promise<readonly string[]>((resolve, reject) => {
    if (waiting.size >= mostWaiting) return reject(new Error('too many answers wait to be opened'))
    const id = nextId++
    waiting.set(id, (opened) => (opened === null ? reject(new Error('could not be opened')) : resolve(opened)))
    say({ type: 'open', id, sandbox, name, addresses, seconds })
  })

const serve = async (address: string, upstreams: readonly string[]) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  resolver.setServers(upstreams)
  const { udp, tcp } = await startDnsServer({
    address,
    domainsOf: (sandbox) => domains.get(sandbox),
    lookup: (name) => resolver.resolve4(name, { ttl: true }),
    open,
  })
  say({ type: 'serving', udp, tcp })
}

process.on('message', (word: ToResolver) => {
  if (word.type === 'serve') void serve(word.address, word.upstreams)
  else if (word.type === 'sandbox' && word.domains !== null) domains.set(word.sandbox, word.domains)
  else if (word.type === 'sandbox') domains.delete(word.sandbox)
  else {
    waiting.get(word.id)?.(word.addresses)
    waiting.delete(word.id)
  }
})
// If the runner has ended, the resolver exits, because only the runner can open addresses in the firewall.
process.on('disconnect', () => process.exit(0))
