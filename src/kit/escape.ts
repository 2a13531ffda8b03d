const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** For HTML and XML alike: between tags, and in attributes that are quoted. */
export const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (character) => entities[character]!)
