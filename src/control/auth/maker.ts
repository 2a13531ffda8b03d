// What an API key makes refers to it in a column `maker_hash`, and the database ends it with the key.
import { isDangling } from '../storage/database.ts'

/** The key that makes something was deleted as it did so: the request comes too late. */
export const isMakerGone = (error: unknown): boolean =>
  isDangling(error) && /_maker_hash_fkey$/.test((error as { constraint_name?: string }).constraint_name ?? '')
