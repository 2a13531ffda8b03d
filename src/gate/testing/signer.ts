// For tests: signs tickets as control does, but with the test's own key.
import { generateKeyPairSync } from 'node:crypto'
import { silentLog } from '#src/kit/log.ts'
import { makeTicket, readTicket, type Ticket, type TicketKey, ticketLastsMs } from '#src/wire/ticket.ts'
import { TicketChecks } from '../tickets.ts'

export type Signer = {
  key: TicketKey
  /**
   * Signs a ticket. Default: a ticket for all toolbox calls of the sandbox `box-id` of the organization `org`, valid
   * from now.
   */
  sign: (more?: Partial<Ticket>) => string
  /** Reads a ticket that this signer has signed. */
  read: (text: string) => Ticket | undefined
}

export const newSigner = (id = 'key-1'): Signer => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return {
    read: (text) => readTicket(text, publicKey),
    key: { id, publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') },
    sign: (more = {}) => {
      const expiresAt = Date.now() + ticketLastsMs
      const ticket: Ticket = {
        sandboxId: 'box-id',
        organizationId: 'org',
        allowed: { kind: 'toolbox' },
        expiresAt,
        ...more,
      }
      return makeTicket(ticket, { id, privateKey })
    },
  }
}

/** Returns an object that checks tickets, as in a gate that knows the keys of these signers. */
export const ticketsOf = (...signers: readonly Signer[]): TicketChecks =>
  new TicketChecks({ listKeys: async () => signers.map(({ key }) => key), log: silentLog() })
