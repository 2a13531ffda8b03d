const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** A number of bytes for people, such as "1.4 MiB". A dash if the size is unknown (undefined or null) or not a size. */
export const sizeText = (bytes: number | null | undefined): string => {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes) || bytes < 0) return '–'
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[step]}`
}
