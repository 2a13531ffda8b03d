// What the runner and its resolver say to each other, over the channel that Node gives a child.

export type ToResolver =
  | { type: 'serve'; address: string; upstreams: readonly string[] }
  /** Names that a sandbox with this address may ask for from now on; `null`: it gets no more answers. */
  | { type: 'sandbox'; sandbox: string; domains: readonly string[] | null }
  /** What was opened of the addresses asked for; only these are told. `null`: it could not be done. */
  | { type: 'opened'; id: number; addresses: readonly string[] | null }

export type FromResolver =
  | { type: 'serving'; udp: number; tcp: number }
  | { type: 'open'; id: number; sandbox: string; name: string; addresses: readonly string[]; seconds: number }
