// A row that was made with an API key refers to the key by the column `maker_hash`. Deleting the key deletes the row
// too.
import { isDangling } from '../storage/database.ts'

/** Whether a row could not be written because its API key was deleted while the request ran. */
export const isMakerGone = (error: unknown): boolean =>
  isDangling(error) && /_maker_hash_fkey$/.test((error as { constraint_name?: string }).constraint_name ?? '')
