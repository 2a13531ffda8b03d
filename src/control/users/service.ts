// Functions about users for other rooms.
export { findUserByEmail, findUserById, freeAddress, insertFirstAdministrator } from './store.ts'
