// A user as control knows them, and as they are shown.
export type UserRow = {
  id: string
  name: string
  email: string
  email_verified: boolean
  system_role: 'admin' | 'user'
  public_keys: { key: string; name: string }[]
  created_at: Date
}

export type User = {
  id: string
  name: string
  email: string
  emailVerified: boolean
  systemRole: 'admin' | 'user'
  publicKeys: { key: string; name: string }[]
  createdAt: Date
}

export const readUser = (row: UserRow): User => ({
  id: row.id,
  name: row.name,
  email: row.email,
  emailVerified: row.email_verified,
  systemRole: row.system_role,
  publicKeys: row.public_keys,
  createdAt: row.created_at,
})

/** Contract/control-plane.md §10. The system role is not the user's to see. */
export const asUserView = ({ id, name, email, emailVerified, publicKeys, createdAt }: User) => ({
  id,
  name,
  email,
  emailVerified,
  publicKeys,
  createdAt: createdAt.toISOString(),
})
