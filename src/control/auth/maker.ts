// Recognises a failed insert of a row whose API key (`maker_hash`) was deleted meanwhile.
// Such a row must not exist: when an API key is deleted, PostgreSQL deletes the key's rows.
import { isDangling } from '../storage/database.ts'

/** Whether the insert of a row failed because the API key to which the row refers was deleted meanwhile. */
export const isMakerGone = (error: unknown): boolean =>
  isDangling(error) && /_maker_hash_fkey$/.test((error as { constraint_name?: string }).constraint_name ?? '')
