/** The shells that `alcove completion` knows. */
export const shells = ['bash', 'zsh', 'fish'] as const
