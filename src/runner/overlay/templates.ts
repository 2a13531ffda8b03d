// The disks that others begin as: images that were made of sandboxes, each over an image that was not.
import type { StoragePool } from './pool.ts'

/** The image below it, and how much it adds, where that is known. */
export type Template = { base: string; sizeBytes?: number }

/** Reads a template from the disk; undefined where there is none. */
export const findTemplate = async (pool: StoragePool, image: string): Promise<Template | undefined> => {
  const base = await pool.baseOf({ template: image })
  if (base === undefined) return undefined
  const sizeBytes = await pool.sizeOfTemplate(image)
  return { base, ...(sizeBytes === undefined ? {} : { sizeBytes }) }
}

export const listTemplates = async (pool: StoragePool): Promise<({ image: string } & Template)[]> => {
  const all = (await pool.listTemplates()).map(async (image) => {
    const template = await findTemplate(pool, image)
    return template === undefined ? [] : [{ image, ...template }]
  })
  return (await Promise.all(all)).flat()
}

/** The images that lie below templates, but for this one. Unlike sizes, they take no process each. */
export const listBases = async (pool: StoragePool, except?: string): Promise<string[]> => {
  const others = (await pool.listTemplates()).filter((image) => image !== except)
  const bases = await Promise.all(others.map((image) => pool.baseOf({ template: image })))
  return bases.filter((base) => base !== undefined)
}
