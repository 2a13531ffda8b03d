// Stores the secrets of this host's sandboxes, in memory only. After a restart the runner requests the secrets again.
import type { KnownSecret, SecretsOfRunner } from '#src/wire/secrets.ts'

type Versioned = SecretsOfRunner['secrets'][number]
type Use = SecretsOfRunner['sandboxes'][number] & { toldAt: number }

export class SecretStore {
  readonly #secrets = new Map<string, Versioned>()
  readonly #uses = new Map<string, Use>()

  /**
   * Stores secrets that control has sent. Ignores older versions of secrets and older generations of sandboxes. `askedAt`: when the
   * runner requested all secrets, if this is the answer to that request. Sandboxes missing in such an answer lose their secrets,
   * except secrets that control has sent since the request.
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
      // Control sends no value for a secret that was deleted or may not be used now. Delete the stored value.
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

  /** Returns the secrets that a sandbox may use. Undefined: control has not sent the sandbox's secrets yet. */
  of(sandboxId: string): KnownSecret[] | undefined {
    return this.#uses.get(sandboxId)?.secretIds.flatMap((id) => {
      const secret = this.#secrets.get(id)
      if (secret === undefined) return []
      const { placeholder, value, hosts, certificate, privateKey } = secret
      return [{ placeholder, value, hosts, certificate, privateKey }]
    })
  }
}
