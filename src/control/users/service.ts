// What other rooms may ask about users.
export { findUserByEmail, findUserById } from './store.ts'
