// What sandboxes use, as the runner reads it from the kernel.

/** What one sandbox uses, and what it may use, at one moment. All but the processors in bytes. */
export type MeterReading = {
  cpuCount: number
  /** Share of what the sandbox may use: 100 is all of it. */
  cpuUsedPct: number
  memTotal: number
  /** What the kernel could not take back. */
  memUsed: number
  /** Memory of files, which the kernel could take back. */
  memCache: number
  diskTotal: number
  /** Absent where the host does not count it. */
  diskUsed?: number
}

export type MeterSample = MeterReading & { sandboxId: string }

/** Most samples in one message. */
export const mostSamples = 500
