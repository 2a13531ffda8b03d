// What other rooms may ask about users.
export { findUserByEmail, findUserById, insertUser } from './store.ts'
