/** Memory in bytes, as the kernel charges it to one cgroup. */
export type MemoryUse = {
  used: number
  anonymous: number
  /** Bytes of the page cache that the kernel charges to the cgroup. */
  cached: number
  shared: number
  mapped: number
  dirty: number
  writeback: number
  activeAnonymous: number
  inactiveAnonymous: number
  activeFile: number
  inactiveFile: number
  unevictable: number
  slabReclaimable: number
  slabUnreclaimable: number
}

export const noMemoryUse: MemoryUse = {
  used: 0,
  anonymous: 0,
  cached: 0,
  shared: 0,
  mapped: 0,
  dirty: 0,
  writeback: 0,
  activeAnonymous: 0,
  inactiveAnonymous: 0,
  activeFile: 0,
  inactiveFile: 0,
  unevictable: 0,
  slabReclaimable: 0,
  slabUnreclaimable: 0,
}
