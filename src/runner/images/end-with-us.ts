/**
 * Wraps a command so that it dies with this process, together with everything it started. It runs in its own mount and pid
 * namespaces.
 */
export const endWithUs = (argv: readonly string[]): string[] => [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'],
  ...argv,
]
