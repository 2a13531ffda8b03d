/** Dies with this process, and takes everything it started along. Runs in mount and process namespaces of its own. */
export const tethered = (argv: readonly string[]): string[] => [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'],
  ...argv,
]
