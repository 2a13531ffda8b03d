// A user as control stores them, and as the API shows them.
export type UserRow = {
  id: string
  name: string
  email: string
  email_verified: boolean
  email_verified_by: string | null
  system_role: 'admin' | 'user'
  public_keys: { key: string; name: string }[]
  created_at: Date
}

export type User = {
  id: string
  name: string
  email: string
  emailVerified: boolean
  /**
   * Whether something other than single sign-on has verified the user's e-mail address. An organization's own identity provider
   * can claim any address, so its verification counts only in that organization.
   */
  ownsAddress: boolean
  systemRole: 'admin' | 'user'
  publicKeys: { key: string; name: string }[]
  createdAt: Date
}

export const readUser = (row: UserRow): User => ({
  id: row.id,
  name: row.name,
  email: row.email,
  emailVerified: row.email_verified,
  ownsAddress: row.email_verified && row.email_verified_by !== 'sso',
  systemRole: row.system_role,
  publicKeys: row.public_keys,
  createdAt: row.created_at,
})

/** Returns the user as clients see them, without the system role. */
export const asUserView = ({ id, name, email, emailVerified, publicKeys, createdAt }: User) => ({
  id,
  name,
  email,
  emailVerified,
  publicKeys,
  createdAt: createdAt.toISOString(),
})
