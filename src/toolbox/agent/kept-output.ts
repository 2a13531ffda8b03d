/** Most output that is kept of each command, on the sandbox's disk; only what was written takes room. */
export const keptOutputBytes = 16 * 1024 * 1024
