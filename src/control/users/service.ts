// What other rooms may call about users.
export { findUserByEmail, findUserById, freeAddress, insertFirstAdministrator } from './store.ts'
