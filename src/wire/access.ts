// What the proxy asks control before it forwards anything: `POST /proxy/access`, with the proxy's own service key.

/** How the caller proves who they are; the first that is present decides (contract/toolbox.md §1). */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  | { kind: 'preview-token'; token: string }
  | { kind: 'none' }

export type AccessQuestion = {
  sandboxIdOrName: string
  credential: Credential
  /** The call counts as activity of the sandbox. */
  countsAsActivity: boolean
}

/** The answer of a 200; a refusal is an ordinary problem that the proxy passes on. */
export type Access = {
  sandboxId: string
  organizationId: string
  /** Where its runner serves toolboxes: `unix:/path` or `http://host:port`. */
  runnerAddress: string
  isStarted: boolean
  state: string
}
