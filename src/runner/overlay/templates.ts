// Reads the pool's records about templates. The base image of a template is never itself a template.
import type { StoragePool } from './pool.ts'

/** `base`: the base image of the template. `sizeBytes`: size of the template without the base image, if known. */
export type Template = { base: string; sizeBytes?: number }

/** Reads what is recorded about a template. Undefined if there is no template of this name. */
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

/** Lists the base images of all templates other than `except`. Starts no process, so a call is fast. */
export const listBases = async (pool: StoragePool, except?: string): Promise<string[]> => {
  const others = (await pool.listTemplates()).filter((image) => image !== except)
  const bases = await Promise.all(others.map((image) => pool.baseOf({ template: image })))
  return bases.filter((base) => base !== undefined)
}
