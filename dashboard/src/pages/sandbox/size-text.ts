const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** A number of bytes for people, such as "1.4 MiB". */
export const sizeText = (bytes: number): string => {
  if (!Number.isFinite(bytes) || bytes < 0) return '–'
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)))
  const value = bytes / 1024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}
