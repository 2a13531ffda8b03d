// Recognises the error of an insert whose API key was deleted meanwhile. Such a row refers to the key by the column
// `maker_hash`, and is deleted with the key.
import { isDangling } from '../storage/database.ts'

/** Whether a row could not be written because its API key was deleted while the request ran. */
export const isMakerGone = (error: unknown): boolean =>
  isDangling(error) && /_maker_hash_fkey$/.test((error as { constraint_name?: string }).constraint_name ?? '')
