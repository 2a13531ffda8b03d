// Tells browsers, which want a page, from programs, which want JSON.

const mediaRange = /^\s*([\w*+.-]+\/[\w*+.-]+)\s*(?:;\s*q=([\d.]+))?/i

/** Whether the caller prefers a page. A caller that wants JSON at least as much gets JSON. */
export const wantsPage = (accept: string | undefined): boolean => {
  const wishes = new Map<string, number>()
  for (const part of (accept ?? '').split(',')) {
    const [, type, quality = '1'] = mediaRange.exec(part) ?? []
    if (type !== undefined) wishes.set(type.toLowerCase(), Number(quality) || 0)
  }
  const html = wishes.get('text/html') ?? 0
  return html > 0 && html > (wishes.get('application/json') ?? 0)
}
