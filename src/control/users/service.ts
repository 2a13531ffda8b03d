// What other rooms may ask about users.
export { findUserByEmail, findUserById, freeAddress } from './store.ts'
