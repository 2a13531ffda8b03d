// Finds users for other modules, and creates the first administrator.
export { findUserByEmail, findUserById, freeAddress, insertFirstAdministrator } from './store.ts'
