// The actions on a snapshot, and the states in which each is possible.
import { answerOf, control } from '../../api/client.ts'
import type { Snapshot } from './search.ts'

const pathOf = (id: string) => ({ params: { path: { idOrName: id } } })

export const activate = (id: string) => answerOf(control.POST('/snapshots/{idOrName}/activate', pathOf(id) as never))
export const deactivate = (id: string) =>
  answerOf(control.POST('/snapshots/{idOrName}/deactivate', pathOf(id) as never))
export const remove = (id: string) => answerOf(control.DELETE('/snapshots/{idOrName}', pathOf(id)))

export const canActivate = ({ state }: Snapshot): boolean => state === 'inactive' || state === 'error'
export const canDeactivate = ({ state }: Snapshot): boolean => state === 'active'

/** How often a list of snapshots is fetched again while a snapshot in it is being made, in ms. */
export const whileMoving = 2000
