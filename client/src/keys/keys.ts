// The commands `alcove key …`.
import { type Api, path } from '../api.ts'
import { cleanLine } from '../clean.ts'
import { deleteAll } from '../delete-all.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note, print, printJson, printRows } from '../print/print.ts'

type Json = { json?: boolean }
type Key = {
  name: string
  value: string
  permissions: string[]
  createdAt: string
  lastUsedAt: string | null
  expiresAt: string | null
}

const defaultPermissions = ['write:sandboxes', 'delete:sandboxes']
const dayMs = 24 * 60 * 60 * 1000

const noKeys = 'The server did not answer with keys. Is it an Alcove server?'

/** Reads a time, or a number of days from now such as `30d`. */
const readExpiry = (text: string): string => {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  const time = days === undefined ? Date.parse(text) : Date.now() + Number(days) * dayMs
  if (Number.isNaN(time))
    throw new Failure('The expiry must be a time, or a number of days such as 30d.', exitCodes.usage)
  return new Date(time).toISOString()
}

export const createKey = async (
  api: Api,
  name: string,
  { permission, expires, json }: Json & { permission?: string[]; expires?: string },
): Promise<void> => {
  const expiresAt = expires === undefined ? {} : { expiresAt: readExpiry(expires) }
  const body = { name, permissions: permission ?? defaultPermissions, ...expiresAt }
  const key = await api.ask<Key>('POST', '/api-keys', { body })
  if (typeof key?.value !== 'string') throw new Failure(noKeys, exitCodes.serverError)
  if (json) return await printJson(key)
  await print(cleanLine(key.value))
  note('The key is shown only once.')
}

export const listKeys = async (api: Api, options: Json): Promise<void> => {
  const keys = await api.ask<Key[]>('GET', '/api-keys')
  if (!Array.isArray(keys)) throw new Failure(noKeys, exitCodes.serverError)
  const rows = keys.map((key) => [
    key.name,
    key.value,
    key.createdAt,
    key.lastUsedAt ?? '-',
    key.expiresAt ?? '-',
    key.permissions.join(' ') || '-',
  ])
  await printRows(options, keys, ['NAME', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES', 'PERMISSIONS'], rows)
}

export const deleteKeys = (api: Api, names: readonly string[], { json }: Json): Promise<void> =>
  deleteAll(api, names, { json, pathOf: (name) => path`/api-keys/${name}` })
