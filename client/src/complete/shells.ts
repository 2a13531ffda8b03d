/** The shells for which `alcove completion` prints a script. */
export const shells = ['bash', 'zsh', 'fish'] as const
