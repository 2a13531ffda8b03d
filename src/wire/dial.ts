// How the proxy reaches a port inside a sandbox: `CONNECT {sandboxId}:{port}` on its runner's socket (RFC 9110 §9.3.6).
// Raw bytes follow the 200, each direction ending on its own. Any other status has no body and is one of these.
export const dialRefusals = {
  noSandbox: 404,
  notStarted: 409,
  nothingListens: 502,
  /** As many connections as one sandbox may have are open, or the agent takes no more. */
  busy: 503,
} as const
