// Stores the secrets of this host's sandboxes, with their values. They are in memory only, so after a restart the runner
// requests them from control again.
import type { KnownSecret, SecretsOfRunner } from '#src/wire/secrets.ts'

type Versioned = SecretsOfRunner['secrets'][number]
type Use = SecretsOfRunner['sandboxes'][number] & { toldAt: number }

export class SecretStore {
  readonly #secrets = new Map<string, Versioned>()
  readonly #uses = new Map<string, Use>()

  /**
   * Stores secrets that control has sent. Ignores a secret with an older version than the stored one, and a sandbox with an older
   * generation. If `askedAt` is given, the message is control's list of all secrets of this runner's sandboxes, which was
   * requested at that time. Sandboxes that are missing in that list lose their secrets, unless control has sent these after the
   * request.
   */
  take({ secrets, sandboxes }: SecretsOfRunner, askedAt?: number, now = Date.now()): void {
    for (const secret of secrets) {
      const known = this.#secrets.get(secret.id)
      if (known === undefined || known.version <= secret.version) this.#secrets.set(secret.id, secret)
    }
    const told = new Set(secrets.map(({ id }) => id))
    for (const use of sandboxes) {
      const known = this.#uses.get(use.sandboxId)
      if (known !== undefined && known.generation > use.generation) continue
      this.#uses.set(use.sandboxId, { ...use, toldAt: now })
      // Control has not sent the value of a secret that the sandbox uses, because the secret was deleted or may not be used now.
      // Delete the stored value.
      for (const id of use.secretIds) if (!told.has(id)) this.#secrets.delete(id)
    }
    if (askedAt !== undefined) this.#keepOnly(new Set(sandboxes.map(({ sandboxId }) => sandboxId)), askedAt)
  }

  #keepOnly(listed: ReadonlySet<string>, askedAt: number): void {
    for (const [sandboxId, { toldAt }] of this.#uses)
      if (toldAt < askedAt && !listed.has(sandboxId)) this.#uses.delete(sandboxId)
    const inUse = new Set([...this.#uses.values()].flatMap(({ secretIds }) => secretIds))
    for (const id of this.#secrets.keys()) if (!inUse.has(id)) this.#secrets.delete(id)
  }

  /** Returns the secrets that a sandbox may use. Undefined: control has not sent them yet. */
  of(sandboxId: string): KnownSecret[] | undefined {
    return this.#uses.get(sandboxId)?.secretIds.flatMap((id) => {
      const secret = this.#secrets.get(id)
      if (secret === undefined) return []
      const { placeholder, value, hosts, certificate, privateKey } = secret
      return [{ placeholder, value, hosts, certificate, privateKey }]
    })
  }
}
