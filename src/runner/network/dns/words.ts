// Messages between the runner and the process of its resolver. They use the IPC channel of a Node child process.

export type ToResolver =
  | { type: 'serve'; address: string; upstreams: readonly string[] }
  /**
   * Sets the domains that a sandbox may ask for; `sandbox` is its address. With `null`, the resolver stops answering this
   * sandbox.
   */
  | { type: 'sandbox'; sandbox: string; domains: readonly string[] | null }
  /**
   * The runner's answer to the resolver's request `open` with this `id`: the addresses that the runner has opened in the
   * firewall. The resolver's answer to the sandbox contains only these addresses. `null`: no address could be opened.
   */
  | { type: 'opened'; id: number; addresses: readonly string[] | null }

export type FromResolver =
  | { type: 'serving'; udp: number; tcp: number }
  | { type: 'open'; id: number; sandbox: string; name: string; addresses: readonly string[]; seconds: number }
