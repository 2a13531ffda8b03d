/** The states of a snapshot that may not be used yet: its image is being made or brought. */
export const statesInMaking = ['building', 'pending', 'pulling', 'snapshotting'] as const
