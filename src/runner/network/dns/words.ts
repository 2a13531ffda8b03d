// Messages between the runner and the process of its resolver, over the IPC channel of a Node child process.

export type ToResolver =
  | { type: 'serve'; address: string; upstreams: readonly string[] }
  /**
   * Sets the domains that a sandbox may ask for; `sandbox` is its address. With `null`, the resolver stops answering this
   * sandbox.
   */
  | { type: 'sandbox'; sandbox: string; domains: readonly string[] | null }
  /**
   * The addresses that the runner has opened in the firewall for the request `open` with this `id`. The answer to the sandbox has
   * only these addresses. `null`: the addresses could not be opened.
   */
  | { type: 'opened'; id: number; addresses: readonly string[] | null }

export type FromResolver =
  | { type: 'serving'; udp: number; tcp: number }
  | { type: 'open'; id: number; sandbox: string; name: string; addresses: readonly string[]; seconds: number }
