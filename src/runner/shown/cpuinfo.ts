/** Returns the host's `/proc/cpuinfo` without the processors that are not in `cpus`. */
export const renderCpuinfo = (ofHost: string, cpus: readonly number[]): string =>
  ofHost
    .split(/\n\n+/)
    .filter((block) => {
      const [, number] = /^processor\s*:\s*(\d+)$/m.exec(block) ?? []
      return block.trim() !== '' && (number === undefined || cpus.includes(Number(number)))
    })
    .map((block) => `${block.trimEnd()}\n\n`)
    .join('')
