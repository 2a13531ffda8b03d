/**
 * Wraps a command: it runs in a mount namespace and a pid namespace of its own. If this process dies, the command is killed,
 * together with everything that it has started.
 */
export const endWithUs = (argv: readonly string[]): string[] => [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'],
  ...argv,
]
