// Templates: images made from sandboxes' disks. The base image of a template is never a template itself.
import type { StoragePool } from './pool.ts'

/** The base image, and the bytes that the template adds to it if known. */
export type Template = { base: string; sizeBytes?: number }

/** Reads a template from the disk; undefined if there is none. */
export const findTemplate = async (pool: StoragePool, image: string): Promise<Template | undefined> => {
  const base = await pool.baseOf({ template: image })
  if (base === undefined) return undefined
  const sizeBytes = await pool.sizeOfTemplate(image)
  return { base, ...(sizeBytes === undefined ? {} : { sizeBytes }) }
}

export const listTemplates = async (pool: StoragePool): Promise<({ image: string } & Template)[]> => {
  const sizes = await pool.sizesOfTemplates()
  const all = (await pool.listTemplates()).map(async (image) => {
    const base = await pool.baseOf({ template: image })
    const sizeBytes = sizes.get(image)
    return base === undefined ? [] : [{ image, base, ...(sizeBytes === undefined ? {} : { sizeBytes }) }]
  })
  return (await Promise.all(all)).flat()
}

/** The base images of all templates except `except`. This is fast, because it starts no process. */
export const listBases = async (pool: StoragePool, except?: string): Promise<string[]> => {
  const others = (await pool.listTemplates()).filter((image) => image !== except)
  const bases = await Promise.all(others.map((image) => pool.baseOf({ template: image })))
  return bases.filter((base) => base !== undefined)
}
