/**
 * Wraps a command in mount and pid namespaces of its own. If this process dies, the kernel kills the command and all processes that
 * it started.
 */
export const endWithUs = (argv: readonly string[]): string[] => [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'],
  ...argv,
]
