// Functions about users, for other modules.
export { findUserByEmail, findUserById, freeAddress, insertFirstAdministrator } from './store.ts'
