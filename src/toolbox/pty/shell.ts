// The program of a PTY: an interactive login shell, bash if the image has it.

const shells = ['bash', 'sh'] as const

/** An invisible sequence that a shell with `lazyStart` prints when its first client wakes it, before all visible output. */
export const startMark = '\x1b[0m'

/** Returns a command that pauses itself (SIGSTOP). When the first client continues it, the command becomes the shell. */
const lazily = (shell: string) => [
  'sh',
  '-c',
  `kill -STOP $$; printf '\\033[0m'; if command -v ${shell} >/dev/null; then exec ${shell} -i -l; fi; exec sh -i -l`,
]

/** The shells to try, in this order, until one exists. */
export const shellsFor = (lazyStart: boolean): string[][] =>
  lazyStart ? [lazily(shells[0])] : shells.map((shell) => [shell, '-i', '-l'])
