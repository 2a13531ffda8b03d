/**
 * Runs `work` for every item, at most `limit` at a time. After a failure, it starts no more work, waits for the running work,
 * and rejects with the first failure.
 */
export const inParallel = async <Item>(
  limit: number,
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
): Promise<void> => {
  const waiting = items.values()
  const failures: unknown[] = []
  const worker = async () => {
    for (const item of waiting) {
      if (failures.length > 0) return
      await work(item).catch((error: unknown) => void failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
  if (failures.length > 0) throw failures[0]
}
