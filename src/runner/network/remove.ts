// Removes everything of an instance's network from the host, for uninstall and for tests. Must not run while sandboxes of the
// instance run.
import { removeFirewall } from './firewall.ts'
import { closeForwarding, leaveForeignChains } from './forwarding.ts'
import { lookForSlots } from './look.ts'
import { deleteSlots } from './make-slots.ts'
import { readNotes, removeNotes } from './notes.ts'
import { giveUpRange } from './range.ts'

export const removeNetwork = async (instance: string): Promise<void> => {
  await deleteSlots(instance, [...(await lookForSlots(instance)).any])
  const left = (await lookForSlots(instance)).any
  if (left.size > 0) throw new Error(`${left.size} networks of ${instance} could not be deleted`)

  await leaveForeignChains(instance)
  await removeFirewall(instance)
  const { range } = await readNotes(instance)
  if (range !== undefined) await giveUpRange(range)
  await closeForwarding(instance)
  await removeNotes(instance)
}
