// The program of a PTY: an interactive login shell, bash where there is one.

const shells = ['bash', 'sh'] as const

/**
 * A lazy shell prints this, which shows nothing, when its first client wakes it. In the log of the PTY it stands before all
 * that a client is shown.
 */
export const startMark = '\x1b[0m'

/** Stops itself, in its terminal, until the first client comes and continues it. */
const lazily = (shell: string) => [
  'sh',
  '-c',
  `kill -STOP $$; printf '\\033[0m'; if command -v ${shell} >/dev/null; then exec ${shell} -i -l; fi; exec sh -i -l`,
]

/** To be tried in this order, while they do not exist. */
export const shellsFor = (lazyStart: boolean): string[][] =>
  lazyStart ? [lazily(shells[0])] : shells.map((shell) => [shell, '-i', '-l'])
