// What other rooms may ask about users.
export { findUserByEmail, findUserById, freeAddress, insertFirstAdministrator } from './store.ts'
