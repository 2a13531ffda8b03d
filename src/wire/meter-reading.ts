// The resources that sandboxes use, as the runner reads them from the kernel.

/** Use and limits of one sandbox at one moment. Memory and disk are in bytes. */
export type MeterReading = {
  cpuCount: number
  /** CPU use in percent of the processors that the sandbox may use: 100 means that it uses all of them fully. */
  cpuUsedPct: number
  memTotal: number
  /** Memory of the sandbox without the file cache. The kernel cannot take this memory back for other uses. */
  memUsed: number
  /** Memory of the sandbox's file cache. The kernel can take this memory back for other uses. */
  memCache: number
  diskTotal: number
  /** Disk space in use. Absent if the host does not measure disk space. */
  diskUsed?: number
}

export type MeterSample = MeterReading & { sandboxId: string }

/** Maximum number of samples of resource use in one message. */
export const mostSamples = 500
