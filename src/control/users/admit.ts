// Makes a user for a person who signs in for the first time.

import type { User } from '#src/control/people/user.ts'
import { makePersonalOrganization } from '../organizations/personal.ts'
import type { Transaction } from '../storage/database.ts'
import { insertUser, type NewUser } from './store.ts'

/** Makes a user with a personal organization. Returns undefined if another user has this e-mail address. */
export const admitUser = async (transaction: Transaction, user: NewUser): Promise<User | undefined> => {
  const made = await insertUser(transaction, user)
  if (made !== undefined) await makePersonalOrganization(transaction, made.id)
  return made
}
