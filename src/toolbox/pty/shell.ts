// The program of a PTY: an interactive login shell, bash where there is one.

const shells = ['bash', 'sh'] as const

/** What a lazy shell says when it starts. It changes nothing that is visible, and only its being there counts. */
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
