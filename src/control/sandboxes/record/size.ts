/** What a sandbox has. */
export type Size = { cpu: number; memoryGiB: number; diskGiB: number }
