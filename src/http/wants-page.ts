// Finds out from the `Accept` header whether a caller is a browser that wants a page, or a program that wants JSON.

const mediaRange = /^\s*([\w*+.-]+\/[\w*+.-]+)\s*(?:;\s*q=([\d.]+))?/i

/** Whether the caller prefers an HTML page to JSON. A caller that wants both equally gets JSON. */
export const wantsPage = (accept: string | undefined): boolean => {
  const wishes = new Map<string, number>()
  for (const part of (accept ?? '').split(',')) {
    const [, type, quality = '1'] = mediaRange.exec(part) ?? []
    if (type !== undefined) wishes.set(type.toLowerCase(), Number(quality) || 0)
  }
  const html = wishes.get('text/html') ?? 0
  return html > 0 && html > (wishes.get('application/json') ?? 0)
}
