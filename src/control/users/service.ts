// What other rooms may ask about users.
export { findUserById } from './store.ts'
