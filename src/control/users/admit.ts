// What other rooms may ask of users: who somebody is, and that somebody new becomes one.
import { makePersonalOrganization } from '../organizations/personal.ts'
import type { Sql, Transaction } from '../storage/database.ts'
import { insertUser, type NewUser } from './store.ts'
import { readUser, type User, type UserRow } from './user.ts'

export const findUserByEmail = async (sql: Sql, email: string): Promise<User | undefined> => {
  const [row] = await sql<UserRow[]>`select * from users where lower(email) = lower(${email})`
  return row && readUser(row)
}

/** A user with an organization of their own; `undefined`: somebody has this address. */
export const admitUser = async (transaction: Transaction, user: NewUser): Promise<User | undefined> => {
  const made = await insertUser(transaction, user)
  if (made !== undefined) await makePersonalOrganization(transaction, made.id)
  return made
}
