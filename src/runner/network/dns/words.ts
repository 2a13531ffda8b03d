// Messages between the runner and its resolver, over the IPC channel of a Node child process.

export type ToResolver =
  | { type: 'serve'; address: string; upstreams: readonly string[] }
  /** Sets the domains that the sandbox with this address may ask for. `null`: the sandbox gets no more answers. */
  | { type: 'sandbox'; sandbox: string; domains: readonly string[] | null }
  /**
   * The addresses that were opened, out of those requested. The answer to the sandbox contains only these. `null`: opening
   * failed.
   */
  | { type: 'opened'; id: number; addresses: readonly string[] | null }

export type FromResolver =
  | { type: 'serving'; udp: number; tcp: number }
  | { type: 'open'; id: number; sandbox: string; name: string; addresses: readonly string[]; seconds: number }
